-- Takes due pipelines; they become due again after a timeout.
-- KEYS: 1 rechecks
-- ARGV: 1 now, 2 maximum pipelines, 3 timeout in ms
-- Returns: their slugs
local bad = check(KEYS[1], 'zset')
if bad then return bad end
local now = clock(ARGV[1])
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[2])
for _, slug in ipairs(due) do
  redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), slug)
end
return due
