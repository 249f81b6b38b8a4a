-- Closes a due window, adds its job to the stream, and hands it the keys that changed. The job checks all keys if a run of
-- the pipeline was requested, and takes the request.
-- KEYS: 1 windows, 2 first events, 3 stream, 4 live, 5 active, 6 message, 7 the window's changed keys, 8 the job's,
--       9 requests
-- ARGV: 1 now, 2 slug, 3 TTL of the job's changed keys in ms, 4 job id, 5 live record, 6 enqueued ms, 7 maximum attempts,
--       8… the message's fields
-- Returns: 1, or 0 if the window is not due
local bad = check(KEYS[1], 'zset', KEYS[2], 'hash', KEYS[3], 'stream', KEYS[5], 'zset', KEYS[9], 'zset')
if bad then return bad end
local due = redis.call('ZSCORE', KEYS[1], ARGV[2])
if not due or tonumber(due) > clock(ARGV[1]) then return 0 end
local known = bytes_of_changed(KEYS[7], due)
if redis.call('ZREM', KEYS[9], ARGV[2]) == 1 then known = nil end
add_job(KEYS[3], KEYS[4], KEYS[5], KEYS[6], ARGV[4], ARGV[5], ARGV[6], ARGV[7], {unpack(ARGV, 8)})
redis.call('ZREM', KEYS[1], ARGV[2])
redis.call('HDEL', KEYS[2], ARGV[2])
if known then
  redis.call('RENAME', KEYS[7], KEYS[8])
  redis.call('PEXPIRE', KEYS[8], ARGV[3])
else
  redis.call('DEL', KEYS[7], KEYS[8])
end
return 1
