-- Whether the store is initialized; not so if the group was missing and had to be created.
-- KEYS: 1 stream, 2 epoch, 3 adopted
-- ARGV: 1 group
-- Returns: 1 if it is
local bad = check(KEYS[1], 'stream')
if bad then return bad end
ensure_group(KEYS[1], ARGV[1], KEYS[2], KEYS[3])
return redis.call('EXISTS', KEYS[2])
