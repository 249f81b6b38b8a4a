-- Closes a due window without a job.
-- KEYS: 1 windows, 2 first events, 3 the window's changed keys
-- ARGV: 1 now, 2 slug, 3 1 if the next window's job looks at all keys
-- Returns: 1, or 0 if the window is not due
local bad = check(KEYS[1], 'zset', KEYS[2], 'hash')
if bad then return bad end
local due = redis.call('ZSCORE', KEYS[1], ARGV[2])
if not due or tonumber(due) > clock(ARGV[1]) then return 0 end
redis.call('ZREM', KEYS[1], ARGV[2])
redis.call('HDEL', KEYS[2], ARGV[2])
if ARGV[3] == '1' then change_all(KEYS[3]) else redis.call('DEL', KEYS[3]) end
return 1
