-- Removes a pipeline from those whose records are to be indexed, unless it was added again.
-- KEYS: 1 unindexed
-- ARGV: 1 pipeline, 2 mark
-- Returns: 1 if it was removed
local bad = check(KEYS[1], 'zset')
if bad then return bad end
local mark = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not mark or tonumber(mark) ~= tonumber(ARGV[2]) then return 0 end
return redis.call('ZREM', KEYS[1], ARGV[1])
