-- Records the deliveries of a claimed notification.
-- KEYS: 1 due notifications, 2 the notification
-- ARGV: 1 now, 2 id, 3 token, 4 deliveries, 5 'continue', 'done' or 'retry', 6 ms until it is due again
-- Returns: 1, or 0 if another process has claimed it
local bad = check(KEYS[1], 'zset', KEYS[2], 'hash')
if bad then return bad end
if redis.call('HGET', KEYS[2], 'token') ~= ARGV[3] then return 0 end
redis.call('HSET', KEYS[2], 'deliveries', ARGV[4])
if ARGV[5] == 'done' then
  redis.call('ZREM', KEYS[1], ARGV[2])
elseif ARGV[5] == 'retry' then
  redis.call('ZADD', KEYS[1], clock(ARGV[1]) + tonumber(ARGV[6]), ARGV[2])
end
return 1
