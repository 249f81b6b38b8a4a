-- Acknowledges pending entries of a consumer that were deleted.
-- KEYS: 1 stream
-- ARGV: 1 group, 2 consumer, 3 maximum entries checked
-- Returns: the entries
local bad = check(KEYS[1], 'stream')
if bad then return bad end
local gone = {}
for _, pending in ipairs(redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', ARGV[3], ARGV[2])) do
  if #redis.call('XRANGE', KEYS[1], pending[1], pending[1]) == 0 then
    redis.call('XACK', KEYS[1], ARGV[1], pending[1])
    gone[#gone + 1] = pending[1]
  end
end
return gone
