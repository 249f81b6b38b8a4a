-- Lengths of the queue's parts.
-- KEYS: 1 stream, 2 delayed, 3 windows, 4 dead, 5 requests
-- ARGV: 1 group
-- Returns: {stream, pending, waiting, windows, dead, requests}
local bad = check(KEYS[1], 'stream', KEYS[2], 'zset', KEYS[3], 'zset', KEYS[4], 'list', KEYS[5], 'zset')
if bad then return bad end
local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1])
local claimed = pending.err and 0 or pending[1]
for _, consumer in ipairs(pending[4] or {}) do
  if consumer[1] == queued_manual or consumer[1] == queued_automatic then claimed = claimed - tonumber(consumer[2]) end
end
return {
  redis.call('XLEN', KEYS[1]),
  claimed,
  redis.call('ZCARD', KEYS[2]),
  redis.call('ZCARD', KEYS[3]),
  redis.call('LLEN', KEYS[4]),
  redis.call('ZCARD', KEYS[5]),
}
