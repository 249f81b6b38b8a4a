-- KEYS: 1 windows
-- ARGV: 1 now, 2 maximum slugs
-- Returns: the slugs whose window is due, the longest due first
local bad = check(KEYS[1], 'zset')
if bad then return bad end
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', clock(ARGV[1]), 'LIMIT', 0, ARGV[2])
