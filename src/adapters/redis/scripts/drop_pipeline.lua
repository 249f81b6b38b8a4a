-- Sets a pipeline's tombstone, and deletes its window, its requested run, its pause, its jobs that are not running, and its
-- ended jobs in the index.
-- KEYS: 1 stream, 2 delayed, 3 active, 4 windows, 5 first events, 6 lock, 7 tombstone,
--       8 the window's changed keys, 9 ended, 10 failed, 11 index, 12 unindexed,
--       13 pauses, 14 requests
-- ARGV: 1 now, 2 group, 3 slug, 4 TTL of the tombstone in ms, 5 live records' prefix, 6 messages' prefix,
--       7 maximum jobs checked, 8 prefix of the jobs' changed keys,
--       9 prefix of a pipeline's ended jobs, 10 prefix of its failed ones
-- Returns: jobs left to drop
local bad = check(KEYS[1], 'stream', KEYS[2], 'zset', KEYS[3], 'zset', KEYS[4], 'zset', KEYS[5], 'hash', KEYS[6],
  'string', KEYS[9], 'zset', KEYS[10], 'zset', KEYS[11], 'hash', KEYS[12], 'zset', KEYS[13], 'hash', KEYS[14], 'zset')
if bad then return bad end
local stream, delayed, active = KEYS[1], KEYS[2], KEYS[3]
local holder = redis.call('GET', KEYS[6])
redis.call('ZREM', KEYS[4], ARGV[3])
redis.call('HDEL', KEYS[5], ARGV[3])
redis.call('DEL', KEYS[8])
local kept = 0
for _, job in ipairs(redis.call('ZRANGE', active, 0, tonumber(ARGV[7]) - 1)) do
  local message = ARGV[6] .. job
  if is_for(holder, job) then
    redis.pcall('HSET', message, 'cancel', 1)
    kept = 1
  else
    local entry = redis.pcall('HGET', message, 'entry')
    if type(entry) == 'string' then remove(stream, ARGV[2], entry) end
    redis.call('ZREM', delayed, job)
    redis.call('ZREM', active, job)
    redis.call('DEL', ARGV[5] .. job, message, ARGV[8] .. job)
  end
end
local index = {ended = KEYS[9], failed = KEYS[10], state = KEYS[11], of_ended = ARGV[9], of_failed = ARGV[10]}
local of_ended = index.of_ended .. ARGV[3]
unindex_jobs(index, redis.call('ZRANGE', of_ended, 0, tonumber(ARGV[7]) - 1), ARGV[3])
redis.call('ZREM', KEYS[12], ARGV[3])
redis.call('HDEL', KEYS[13], ARGV[3])
redis.call('ZREM', KEYS[14], ARGV[3])
redis.call('SET', KEYS[7], clock(ARGV[1]), 'PX', ARGV[4])
return redis.call('ZCARD', active) - kept + redis.call('ZCARD', of_ended)
