-- KEYS: 1 requests, 2 pauses, 3 windows
-- ARGV: 1 now, 2 maximum slugs
-- Returns: the slugs whose request is due and whose pipeline neither is paused nor has a window, the longest due first
local bad = check(KEYS[1], 'zset', KEYS[2], 'hash', KEYS[3], 'zset')
if bad then return bad end
return due_slugs(KEYS[1], KEYS[2], KEYS[3], clock(ARGV[1]), tonumber(ARGV[2]))
