-- Releases a pipeline's lock, and makes its oldest deferred job due.
-- KEYS: 1 lock, 2 delayed, 3 active
-- ARGV: 1 now, 2 token, 3 messages' prefix
-- Returns: 'done' or 'lost'
local bad = check(KEYS[1], 'string', KEYS[2], 'zset', KEYS[3], 'zset')
if bad then return bad end
if redis.call('GET', KEYS[1]) ~= ARGV[2] then return 'lost' end
redis.call('DEL', KEYS[1])
promote(KEYS[3], KEYS[2], ARGV[3], clock(ARGV[1]), nil)
return 'done'
