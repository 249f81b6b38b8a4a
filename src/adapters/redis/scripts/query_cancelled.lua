-- Tells of queries whether their end is wished.
-- KEYS: queries
-- ARGV: a token for each
-- Returns: {1 or 0, …}
local wished = {}
for i, value in ipairs(redis.call('MGET', unpack(KEYS))) do
  wished[i] = value == '!' .. ARGV[i] and 1 or 0
end
return wished
