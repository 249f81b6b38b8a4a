-- Releases a lock on a name.
-- KEYS: 1 lock
-- ARGV: 1 token
-- Returns: 1 if the token held it
local bad = check(KEYS[1], 'string')
if bad then return bad end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
