-- Takes pipelines that are due to be compared; they are due again after a time.
-- KEYS: 1 rechecks
-- ARGV: 1 now, 2 pipelines at most, 3 time in ms until they are due again
-- Returns: their slugs
local bad = check(KEYS[1], 'zset')
if bad then return bad end
local now = clock(ARGV[1])
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[2])
for _, slug in ipairs(due) do
  redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), slug)
end
return due
