-- Requests the cancellation of a query.
-- KEYS: 1 query
-- ARGV: none
-- Returns: 1, or 0 if it is not registered
local bad = check(KEYS[1], 'string')
if bad then return bad end
local token = redis.call('GET', KEYS[1])
if not token then return 0 end
if string.sub(token, 1, 1) ~= '!' then redis.call('SET', KEYS[1], '!' .. token, 'KEEPTTL') end
return 1
