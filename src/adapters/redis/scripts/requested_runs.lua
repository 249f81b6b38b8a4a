-- KEYS: 1 requests, 2 pauses, 3 windows
-- ARGV: 1 now, 2 maximum slugs
-- Returns: the slugs whose request is due and whose pipeline neither is paused nor has a window, the longest due first
local bad = check(KEYS[1], 'zset', KEYS[2], 'hash', KEYS[3], 'zset')
if bad then return bad end
if redis.call('HEXISTS', KEYS[2], '*') == 1 then return {} end
local now, most, from = clock(ARGV[1]), tonumber(ARGV[2]), 0
local due = {}
repeat
  local some = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', from, most)
  local paused = #some > 0 and redis.call('HMGET', KEYS[2], unpack(some))
  for i, slug in ipairs(some) do
    if not paused[i] and #due < most and not redis.call('ZSCORE', KEYS[3], slug) then due[#due + 1] = slug end
  end
  from = from + #some
until #some == 0 or #due == most
return due
