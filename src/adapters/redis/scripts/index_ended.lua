-- Adds ended jobs to the index.
-- KEYS: 1 ended, 2 failed, 3 index
-- ARGV: 1 prefix of a pipeline's ended jobs, 2 prefix of its failed ones, 3 maximum jobs; then of each job: its position,
--       its pipeline, 1 if it failed
-- Returns: 1
local bad = check(KEYS[1], 'zset', KEYS[2], 'zset', KEYS[3], 'hash')
if bad then return bad end
local index = {ended = KEYS[1], failed = KEYS[2], state = KEYS[3], of_ended = ARGV[1], of_failed = ARGV[2]}
for i = 4, #ARGV, 3 do index_job(index, ARGV[i], ARGV[i + 1], ARGV[i + 2] == '1') end
trim_index(index, tonumber(ARGV[3]))
return 1
