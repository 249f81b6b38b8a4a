-- Starts publishing, unless the job was cancelled; it can't be cancelled from then on.
-- KEYS: 1 message, 2 lock
-- ARGV: 1 token
-- Returns: 'begun', 'cancelled' or 'lost'
local bad = check(KEYS[1], 'hash', KEYS[2], 'string')
if bad then return bad end
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 'lost' end
if redis.call('HEXISTS', KEYS[1], 'cancel') == 1 then return 'cancelled' end
redis.call('HSET', KEYS[1], 'publishing', 1)
return 'begun'
