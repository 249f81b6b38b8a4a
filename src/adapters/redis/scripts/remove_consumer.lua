-- Deletes a consumer without pending entries.
-- KEYS: 1 stream
-- ARGV: 1 group, 2 consumer
-- Returns: 1 if it is deleted
local bad = check(KEYS[1], 'stream')
if bad then return bad end
local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2])
if pending.err then
  if string.find(pending.err, 'NOGROUP', 1, true) then return 1 end
  return pending
end
if #pending > 0 then return 0 end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
