-- Makes a running job wait for a delay, and releases the lock.
-- KEYS: 1 stream, 2 delayed, 3 live, 4 active, 5 message, 6 lock
-- ARGV: 1 now, 2 group, 3 entry, 4 job id, 5 token, 6 delay ms, 7 reason, 8 1 if the attempt is refunded,
--       9 live record, 10 enqueued ms, 11 messages' prefix, 12… the message's fields: name, value
-- Returns: 'done' or 'lost'
local bad = check(KEYS[1], 'stream', KEYS[2], 'zset', KEYS[4], 'zset', KEYS[5], 'hash', KEYS[6], 'string')
if bad then return bad end
local delayed, active, message, lock, job = KEYS[2], KEYS[4], KEYS[5], KEYS[6], ARGV[4]
if redis.call('GET', lock) ~= ARGV[5] then return 'lost' end

local now = clock(ARGV[1])
local due = now + tonumber(ARGV[6])
remove_all(KEYS[1], ARGV[2], ARGV[3], message)
redis.call('HDEL', message, 'running', 'worker', 'started_at', 'publishing', 'entry')
local attempts = tonumber(redis.call('HGET', message, 'attempts') or 0) or 0
if ARGV[8] == '1' and attempts > 0 then redis.call('HSET', message, 'attempts', attempts - 1) end
redis.call('HSET', message, 'not_before', due, 'reason', ARGV[7], unpack(ARGV, 12))
redis.call('ZADD', delayed, due, job)
redis.call('ZADD', active, 'NX', ARGV[10], job)
redis.call('SET', KEYS[3], ARGV[9])
redis.call('DEL', lock)
promote(active, delayed, ARGV[11], now, job)
return 'done'
