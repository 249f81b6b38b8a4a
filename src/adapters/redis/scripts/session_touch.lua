-- Extends a session.
-- KEYS: 1 session
-- ARGV: 1 now, 2 idle ms
-- Returns: {created ms, ends ms}, nil if there is none, or a value that is not a session
local bad = check(KEYS[1], 'string')
if bad then return bad end
local session = redis.call('GET', KEYS[1])
if not session then return false end
local created, ends = string.match(session, '^(%d+) (%d+)$')
if not created then return session end
local left = tonumber(ends) - clock(ARGV[1])
if left <= 0 then
  redis.call('DEL', KEYS[1])
  return false
end
redis.call('PEXPIRE', KEYS[1], math.min(tonumber(ARGV[2]), left))
return {tonumber(created), tonumber(ends)}
