-- Lengths of the queue's parts.
-- KEYS: 1 stream, 2 delayed, 3 windows, 4 dead
-- ARGV: 1 group
-- Returns: {stream, pending, waiting, windows, dead}
local bad = check(KEYS[1], 'stream', KEYS[2], 'zset', KEYS[3], 'zset', KEYS[4], 'list')
if bad then return bad end
local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1])
return {
  redis.call('XLEN', KEYS[1]),
  pending.err and 0 or pending[1],
  redis.call('ZCARD', KEYS[2]),
  redis.call('ZCARD', KEYS[3]),
  redis.call('LLEN', KEYS[4]),
}
