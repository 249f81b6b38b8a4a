-- Asks whether a login may be tried; if so, it counts as failed.
-- KEYS: 1 failures of the address (hash: count, last_ms)
-- ARGV: 1 now, 2 failures without a wait, 3 first wait s, 4 longest wait s, 5 memory s
-- Returns: 0 if it may, else how long not, in ms
local bad = check(KEYS[1], 'hash')
if bad then return bad end
local now = clock(ARGV[1])
local count = tonumber(redis.call('HGET', KEYS[1], 'count') or 0) or 0
local last = tonumber(redis.call('HGET', KEYS[1], 'last_ms') or 0) or 0
local beyond = count - tonumber(ARGV[2])
if beyond >= 0 then
  local wait = math.min(tonumber(ARGV[3]) * 2 ^ math.min(beyond, 16), tonumber(ARGV[4])) * 1000
  -- A clock that was set back makes nobody wait longer than that.
  local left = math.min(last + wait - now, wait)
  if left > 0 then return left end
end
redis.call('HSET', KEYS[1], 'count', count + 1, 'last_ms', now)
redis.call('EXPIRE', KEYS[1], ARGV[5])
return 0
