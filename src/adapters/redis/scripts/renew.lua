-- Extends a lock.
-- KEYS: 1 lock
-- ARGV: 1 token, 2 TTL ms
-- Returns: 'done' or 'lost'
local bad = check(KEYS[1], 'string')
if bad then return bad end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 'done'
