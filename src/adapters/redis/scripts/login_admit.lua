-- Admits a login attempt, which then counts as failed.
-- KEYS: 1 marker of an address that has logged in (string), 2.. failures in each scope, that of the address first
--   (hash: count, last_ms)
-- ARGV: 1 now, 2 memory s, then for each scope: failures without a wait, first wait s, longest wait s
-- Returns: 0 if admitted, else the wait in ms
local scopes = #KEYS
if redis.call('EXISTS', KEYS[1]) == 1 then scopes = 2 end
local now = clock(ARGV[1])
local counts = {}
local longest = 0
for at = 2, scopes do
  local bad = check(KEYS[at], 'hash')
  if bad then return bad end
  local count = tonumber(redis.call('HGET', KEYS[at], 'count') or 0) or 0
  local last = tonumber(redis.call('HGET', KEYS[at], 'last_ms') or 0) or 0
  local rule = 3 * at - 3
  local beyond = count - tonumber(ARGV[rule])
  if beyond >= 0 then
    local wait = math.min(tonumber(ARGV[rule + 1]) * 2 ^ math.min(beyond, 16), tonumber(ARGV[rule + 2])) * 1000
    -- Bounds the wait if the clock was set back.
    longest = math.max(longest, math.min(last + wait - now, wait))
  end
  counts[at] = count
end
if longest > 0 then return longest end
for at = 2, scopes do
  redis.call('HSET', KEYS[at], 'count', counts[at] + 1, 'last_ms', now)
  redis.call('EXPIRE', KEYS[at], ARGV[2])
end
return 0
