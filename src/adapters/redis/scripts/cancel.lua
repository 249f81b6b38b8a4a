-- Requests a job's cancellation.
-- KEYS: 1 delayed, 2 active, 3 message, 4 stream
-- ARGV: 1 now, 2 job id, 3 group
-- Returns: 'requested', 'too_late' or 'not_active'
local bad = check(KEYS[1], 'zset', KEYS[2], 'zset', KEYS[3], 'hash', KEYS[4], 'stream')
if bad then return bad end
local delayed, message, job = KEYS[1], KEYS[3], ARGV[2]
if not redis.call('ZSCORE', KEYS[2], job) then return 'not_active' end
if redis.call('HEXISTS', message, 'publishing') == 1 then return 'too_late' end
local now = clock(ARGV[1])
local due = redis.call('ZSCORE', delayed, job)
redis.call('HSET', message, 'cancel', 1)
-- A queued job ends as soon as a manual one would start; see claim.lua for one that no claim has read.
local entry = redis.call('HGET', message, 'entry')
local pending = entry and redis.pcall('XPENDING', KEYS[4], ARGV[3], entry, entry, 1)
if pending and not pending.err and pending[1] and pending[1][2] == queued_automatic then
  redis.call('XCLAIM', KEYS[4], ARGV[3], queued_manual, 0, entry, 'JUSTID')
end
if due and tonumber(due) > now then
  redis.call('ZADD', delayed, now, job)
  redis.call('HSET', message, 'not_before', now)
end
return 'requested'
