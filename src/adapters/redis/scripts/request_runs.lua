-- Requests runs of pipelines; one that is requested stays due when it was.
-- KEYS: 1 requests
-- ARGV: 1 now, 2 ms until they are due, 3… slugs
-- Returns: how many were added
local bad = check(KEYS[1], 'zset')
if bad then return bad end
local due, added = clock(ARGV[1]) + tonumber(ARGV[2]), 0
for i = 3, #ARGV do added = added + redis.call('ZADD', KEYS[1], 'NX', due, ARGV[i]) end
return added
