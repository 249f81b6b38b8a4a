-- Records the result of comparing a pipeline.
-- KEYS: 1 rechecks, 2 its pause
-- ARGV: 1 now, 2 slug, 3 'retry', 'run_requested' or 'done', 4 first pause in ms, 5 longest pause in ms,
--       6 ms until the next try
-- Returns: 1
local bad = check(KEYS[1], 'zset', KEYS[2], 'string')
if bad then return bad end
local now = clock(ARGV[1])
if ARGV[3] == 'retry' then
  if redis.call('ZSCORE', KEYS[1], ARGV[2]) then redis.call('ZADD', KEYS[1], now + tonumber(ARGV[6]), ARGV[2]) end
  return 1
end
redis.call('ZREM', KEYS[1], ARGV[2])
if ARGV[3] == 'run_requested' then
  local pause = tonumber(string.match(redis.call('GET', KEYS[2]) or '', '^(%d+) %d+$'))
  pause = pause and math.min(pause * 2, tonumber(ARGV[5])) or tonumber(ARGV[4])
  redis.call('SET', KEYS[2], string.format('%.0f %.0f', pause, now + pause), 'PX', ARGV[5])
else
  redis.call('DEL', KEYS[2])
end
return 1
