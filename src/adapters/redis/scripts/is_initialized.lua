-- Whether the store remembers; a group that is missing is made, and says no.
-- KEYS: 1 stream, 2 epoch, 3 adopted
-- ARGV: 1 group
-- Returns: 1 if it does
local bad = check(KEYS[1], 'stream')
if bad then return bad end
ensure_group(KEYS[1], ARGV[1], KEYS[2], KEYS[3])
return redis.call('EXISTS', KEYS[2])
