-- Corrects due times beyond the longest wait, after the server's clock was set back.
-- KEYS: 1 delayed, 2 windows, 3 first events, 4 requests
-- ARGV: 1 now, 2 longest wait of a job in ms, 3 longest wait of a window or request in ms, 4 maximum corrections
-- Returns: corrections
local bad = check(KEYS[1], 'zset', KEYS[2], 'zset', KEYS[3], 'hash', KEYS[4], 'zset')
if bad then return bad end
local now = clock(ARGV[1])
local clamped = 0
local function clamp(key, longest, each)
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. (now + tonumber(longest)), '+inf', 'LIMIT', 0, ARGV[4])) do
    redis.call('ZADD', key, now, name)
    if each then each(name) end
    clamped = clamped + 1
  end
end
clamp(KEYS[1], ARGV[2])
clamp(KEYS[2], ARGV[3], function(slug) redis.call('HSET', KEYS[3], slug, now) end)
clamp(KEYS[4], ARGV[3])
return clamped
