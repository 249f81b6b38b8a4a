-- Registers a query, unless its id is in use.
-- KEYS: 1 query
-- ARGV: 1 token, 2 TTL in ms
-- Returns: 1, or 0 if another has the id
local bad = check(KEYS[1], 'string')
if bad then return bad end
local known = redis.call('GET', KEYS[1])
if known then return known == ARGV[1] and 1 or 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
