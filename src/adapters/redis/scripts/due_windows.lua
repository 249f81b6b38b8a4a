-- KEYS: 1 windows, 2 pauses
-- ARGV: 1 now, 2 maximum slugs
-- Returns: the slugs whose window is due and whose pipeline isn't paused, the longest due first
local bad = check(KEYS[1], 'zset', KEYS[2], 'hash')
if bad then return bad end
return due_slugs(KEYS[1], KEYS[2], nil, clock(ARGV[1]), tonumber(ARGV[2]))
