-- Replaces the live record of a running job.
-- KEYS: 1 live, 2 lock, 3 message
-- ARGV: 1 token, 2 live record
-- Returns: 'held', 'cancelled' (and held) or 'lost'
local bad = check(KEYS[2], 'string', KEYS[3], 'hash')
if bad then return bad end
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 'lost' end
redis.call('SET', KEYS[1], ARGV[2])
if redis.call('HEXISTS', KEYS[3], 'cancel') == 1 then return 'cancelled' end
return 'held'
