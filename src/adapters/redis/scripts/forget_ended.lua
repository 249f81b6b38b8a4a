-- Removes a pipeline's jobs older than a time from the index.
-- KEYS: 1 ended, 2 failed, 3 index
-- ARGV: 1 prefix of a pipeline's ended jobs, 2 prefix of its failed ones, 3 slug, 4 the first position that stays,
--       5 maximum jobs
-- Returns: how many
local bad = check(KEYS[1], 'zset', KEYS[2], 'zset', KEYS[3], 'hash')
if bad then return bad end
local index = {ended = KEYS[1], failed = KEYS[2], state = KEYS[3], of_ended = ARGV[1], of_failed = ARGV[2]}
local old = redis.call('ZRANGEBYLEX', index.of_ended .. ARGV[3], '-', '(' .. ARGV[4], 'LIMIT', 0, ARGV[5])
unindex_jobs(index, old, ARGV[3])
return #old
