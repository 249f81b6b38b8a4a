-- Adds a pipeline to the rechecks.
-- KEYS: 1 rechecks, 2 its pause
-- ARGV: 1 now, 2 slug, 3 maximum pipelines, 4 TTL of the list in ms, 5 longest pause in ms
-- Returns: 1 if it is on the list
local bad = check(KEYS[1], 'zset', KEYS[2], 'string')
if bad then return bad end
local now = clock(ARGV[1])
if not redis.call('ZSCORE', KEYS[1], ARGV[2]) then
  if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
  local over = tonumber(string.match(redis.call('GET', KEYS[2]) or '', '^%d+ (%d+)$') or now)
  redis.call('ZADD', KEYS[1], math.max(now, math.min(over, now + tonumber(ARGV[5]))), ARGV[2])
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
