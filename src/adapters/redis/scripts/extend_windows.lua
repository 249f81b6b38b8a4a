-- Opens or extends debounce windows: due after a quiet period, or the longest wait after the first event.
-- KEYS: 1 windows, 2 first events
-- ARGV: 1 now, 2 quiet ms, 3 longest wait ms, 4… slugs
-- Returns: when each was opened, in ms
local bad = check(KEYS[1], 'zset', KEYS[2], 'hash')
if bad then return bad end
local now, opened = clock(ARGV[1]), {}
for i = 4, #ARGV do
  local slug = ARGV[i]
  local first = redis.call('ZSCORE', KEYS[1], slug) and tonumber(redis.call('HGET', KEYS[2], slug) or '')
  if not first or first > now then
    first = now
    redis.call('HSET', KEYS[2], slug, first)
  end
  opened[#opened + 1] = first
  redis.call('ZADD', KEYS[1], math.min(now + tonumber(ARGV[2]), first + tonumber(ARGV[3])), slug)
end
return opened
