-- Creates the stream and its group if missing.
-- KEYS: 1 stream, 2 epoch, 3 adopted
-- ARGV: 1 group
-- Returns: 1 if it created them
local bad = check(KEYS[1], 'stream')
if bad then return bad end
return ensure_group(KEYS[1], ARGV[1], KEYS[2], KEYS[3]) and 1 or 0
