-- Ends a running job, adds it to the index, and releases the lock.
-- KEYS: 1 stream, 2 delayed, 3 live, 4 active, 5 message, 6 lock, 7 ended, 8 failed, 9 index
-- ARGV: 1 now, 2 group, 3 entry, 4 job id, 5 token, 6 live record, 7 its TTL in ms, 8 messages' prefix,
--       9 prefix of the jobs' changed keys, 10 the window's changed keys, 11 tombstone, 12 1 if the job completed,
--       13 prefix of a pipeline's ended jobs, 14 prefix of its failed ones, 15 maximum jobs of the index, 16 pipeline,
--       17 position of the job, or '' if it is not indexed
-- Returns: 'done' or 'lost'
local bad = check(KEYS[1], 'stream', KEYS[2], 'zset', KEYS[4], 'zset', KEYS[5], 'hash', KEYS[6], 'string',
  KEYS[7], 'zset', KEYS[8], 'zset', KEYS[9], 'hash')
if bad then return bad end
local delayed, active, message, lock, job = KEYS[2], KEYS[4], KEYS[5], KEYS[6], ARGV[4]
if redis.call('GET', lock) ~= ARGV[5] then return 'lost' end
remove_all(KEYS[1], ARGV[2], ARGV[3], message)
redis.call('ZREM', active, job)
redis.call('ZREM', delayed, job)
redis.call('DEL', message, lock, ARGV[9] .. job)
local exists = redis.call('EXISTS', ARGV[11]) == 0
if ARGV[12] ~= '1' and exists then look_at_all(active, ARGV[9], ARGV[10]) end
if ARGV[17] ~= '' and exists then
  local index = {ended = KEYS[7], failed = KEYS[8], state = KEYS[9], of_ended = ARGV[13], of_failed = ARGV[14]}
  index_job(index, ARGV[17], ARGV[16], ARGV[12] ~= '1')
  trim_index(index, tonumber(ARGV[15]))
end
redis.call('SET', KEYS[3], ARGV[6], 'PX', ARGV[7])
promote(active, delayed, ARGV[8], clock(ARGV[1]), job)
return 'done'
