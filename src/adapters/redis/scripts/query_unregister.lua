-- Removes a query.
-- KEYS: 1 query
-- ARGV: 1 token
-- Returns: 1 if it was registered under this token
local bad = check(KEYS[1], 'string')
if bad then return bad end
local known = redis.call('GET', KEYS[1])
if known ~= ARGV[1] and known ~= '!' .. ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
