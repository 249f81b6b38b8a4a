-- Whether queries were cancelled.
-- KEYS: queries
-- ARGV: a token for each
-- Returns: {1 or 0, …}
local cancelled = {}
for i, value in ipairs(redis.call('MGET', unpack(KEYS))) do
  cancelled[i] = value == '!' .. ARGV[i] and 1 or 0
end
return cancelled
