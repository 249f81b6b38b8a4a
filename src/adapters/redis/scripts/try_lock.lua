-- Acquires or extends a lock on a name.
-- KEYS: 1 lock
-- ARGV: 1 token, 2 TTL ms
-- Returns: 1, or 0 if another token holds it
local bad = check(KEYS[1], 'string')
if bad then return bad end
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
