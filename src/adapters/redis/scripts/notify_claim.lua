-- Claims due notifications.
-- KEYS: 1 due notifications, 2 all notifications
-- ARGV: 1 now, 2 most notifications, 3 TTL of the claim in ms, 4 token, 5 prefix of notifications
-- Returns: for each its id, body and deliveries
local bad = check(KEYS[1], 'zset', KEYS[2], 'zset')
if bad then return bad end
local now = clock(ARGV[1])
local claimed = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[2])) do
  local item = redis.pcall('HMGET', ARGV[5] .. id, 'body', 'deliveries')
  if item.err or not item[1] then
    redis.call('ZREM', KEYS[1], id)
    redis.call('ZREM', KEYS[2], id)
  else
    redis.call('HSET', ARGV[5] .. id, 'token', ARGV[4])
    redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), id)
    claimed[#claimed + 1] = {id, item[1], item[2] or ''}
  end
end
return claimed
