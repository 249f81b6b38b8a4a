-- Ends a pause, and makes the pipeline's jobs due that waited for its end.
-- KEYS: 1 pauses, 2 delayed, 3 active
-- ARGV: 1 now, 2 slug or '*', 3 messages' prefix
-- Returns: 1, or 0 without such a pause
local bad = check(KEYS[1], 'hash', KEYS[2], 'zset')
if bad then return bad end
if redis.call('HDEL', KEYS[1], ARGV[2]) == 0 then return 0 end
if ARGV[2] == '*' then return 1 end
bad = check(KEYS[3], 'zset')
if bad then return bad end
local now = clock(ARGV[1])
for _, job in ipairs(redis.call('ZRANGE', KEYS[3], 0, 999)) do
  local message = ARGV[3] .. job
  if redis.call('ZSCORE', KEYS[2], job) and redis.pcall('HGET', message, 'reason') == 'paused' then
    redis.call('ZADD', KEYS[2], now, job)
    redis.call('HSET', message, 'not_before', now)
  end
end
return 1
