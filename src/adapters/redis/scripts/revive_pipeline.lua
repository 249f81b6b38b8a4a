-- Removes a pipeline's tombstone. The next window's job looks at all keys, and the records are indexed.
-- KEYS: 1 tombstone, 2 the window's changed keys, 3 index, 4 unindexed
-- ARGV: 1 pipeline
-- Returns: 1 if there was one
local bad = check(KEYS[3], 'hash', KEYS[4], 'zset')
if bad then return bad end
change_all(KEYS[2])
redis.call('ZADD', KEYS[4], redis.call('HINCRBY', KEYS[3], 'marks', 1), ARGV[1])
return redis.call('DEL', KEYS[1])
