-- Moves due jobs to the stream. One whose message is lost only stops waiting: requeue_lost handles it.
-- KEYS: 1 stream, 2 delayed
-- ARGV: 1 now, 2 maximum jobs, 3 messages' prefix
-- Returns: how many were moved
local bad = check(KEYS[1], 'stream', KEYS[2], 'zset')
if bad then return bad end
local moved = 0
for _, job in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', clock(ARGV[1]), 'LIMIT', 0, ARGV[2])) do
  local message = ARGV[3] .. job
  local fields = fields_of(message)
  if fields then
    local entry = redis.call('XADD', KEYS[1], '*', unpack(fields))
    redis.call('HSET', message, 'entry', entry)
    redis.call('HDEL', message, 'not_before', 'reason')
    moved = moved + 1
  end
  redis.call('ZREM', KEYS[2], job)
end
return moved
