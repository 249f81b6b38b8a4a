-- Reads the state of a condition.
-- KEYS: 1 the condition's state
-- ARGV: 1 now
-- Returns: now in ms, the state or nil
local bad = check(KEYS[1], 'string')
if bad then return bad end
return {string.format('%.0f', clock(ARGV[1])), redis.call('GET', KEYS[1])}
