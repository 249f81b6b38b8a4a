-- Shows a running job as it is now.
-- KEYS: 1 live, 2 lock
-- ARGV: 1 token, 2 live record
-- Returns: 'done' or 'lost'
local bad = check(KEYS[2], 'string')
if bad then return bad end
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 'lost' end
redis.call('SET', KEYS[1], ARGV[2])
return 'done'
