-- Refunds the attempt of a start whose lock is lost, unless the job was started again since.
-- KEYS: 1 message
-- ARGV: 1 fence
-- Returns: 1, or 0 if nothing was refunded
local bad = check(KEYS[1], 'hash')
if bad then return bad end
if redis.call('HGET', KEYS[1], 'running') ~= ARGV[1] then return 0 end
local attempts = tonumber(redis.call('HGET', KEYS[1], 'attempts') or 0) or 0
redis.call('HDEL', KEYS[1], 'running')
if attempts > 0 then redis.call('HSET', KEYS[1], 'attempts', attempts - 1) end
return 1
