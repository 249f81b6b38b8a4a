-- Undoes the failure of a login that succeeded, and remembers the address.
-- KEYS: 1 marker of an address that has logged in (string), 2.. failures in each scope, that of the address first
--   (hash: count, last_ms)
-- ARGV: 1 how long the address is remembered, in s
-- Returns: 1
local counted = redis.call('EXISTS', KEYS[1]) == 0
redis.call('DEL', KEYS[2])
for at = 3, #KEYS do
  -- A key of another type is left unchanged; the next admission reports it.
  if counted and not check(KEYS[at], 'hash') then
    local count = tonumber(redis.call('HGET', KEYS[at], 'count') or 0) or 0
    if count > 0 then redis.call('HSET', KEYS[at], 'count', count - 1) end
  end
end
redis.call('SET', KEYS[1], '1', 'EX', ARGV[1])
return 1
