-- Ended jobs of the index, newest first.
-- KEYS: 1 the set to read, 2 index, 3 unindexed
-- ARGV: 1 the newest position in the form of ZREVRANGEBYLEX, 2 maximum jobs, 3 the pipeline, or '' for all
-- Returns: 1 if records remain to be indexed, the ms since which all jobs are indexed or '', the members of the set
local bad = check(KEYS[1], 'zset', KEYS[2], 'hash', KEYS[3], 'zset')
if bad then return bad end
local state = redis.call('HMGET', KEYS[2], 'built', 'since_ms')
local remain = not state[1]
if ARGV[3] == '' then
  remain = remain or redis.call('ZCARD', KEYS[3]) > 0
else
  remain = remain or redis.call('ZSCORE', KEYS[3], ARGV[3])
end
local found = redis.call('ZREVRANGEBYLEX', KEYS[1], ARGV[1], '-', 'LIMIT', 0, ARGV[2])
return {remain and 1 or 0, state[2] or '', found}
