-- Starts a claimed job: takes the pipeline's lock and counts the attempt.
-- KEYS: 1 stream, 2 delayed, 3 live, 4 active, 5 message, 6 lock, 7 fences, 8 tombstone,
--       9 the job's changed keys
-- ARGV: 1 now, 2 group, 3 consumer, 4 entry, 5 job id, 6 slug, 7 enqueued ms, 8 token, 9 lock TTL ms, 10 fence floor,
--       11 defer margin ms, 12 longest defer ms, 13 maximum attempts, 14 live record of a new job, 15 messages' prefix,
--       16… the message's fields: name, value
-- Returns: {'running', fence, attempts, lost starts, 1 if cancelled}, {'deferred', due ms}, {'running_elsewhere'},
--          {'not_mine'}, {'dropped'} or {'id_taken'}. A repeated start with the same token: the same reply
local bad = check(KEYS[1], 'stream', KEYS[2], 'zset', KEYS[4], 'zset', KEYS[5], 'hash', KEYS[6], 'string', KEYS[7],
  'hash', KEYS[8], 'string')
if bad then return bad end
local stream, delayed, live, active, message, lock = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local group, consumer, entry, job = ARGV[2], ARGV[3], ARGV[4], ARGV[5]

if redis.call('GET', lock) == ARGV[8] then
  local known = redis.call('HMGET', message, 'running', 'attempts', 'lost')
  return {'running', known[1] or '0', known[2] or '1', known[3] or '0', redis.call('HEXISTS', message, 'cancel')}
end

local pending = redis.pcall('XPENDING', stream, group, entry, entry, 1, consumer)
if pending.err then
  if string.find(pending.err, 'NOGROUP', 1, true) then return {'not_mine'} end
  return pending
end
if #pending == 0 then return {'not_mine'} end

-- A job of another pipeline keeps its id.
local owner = redis.call('HGET', message, 'pipeline')
if owner and owner ~= ARGV[6] then return {'id_taken'} end
local mark = tonumber(redis.call('GET', KEYS[8]) or '')
local holder = redis.call('GET', lock)
if is_for(holder, job) then return {'running_elsewhere'} end
if mark and tonumber(ARGV[7]) <= mark then
  remove_all(stream, group, entry, message)
  redis.call('ZREM', active, job)
  redis.call('ZREM', delayed, job)
  redis.call('DEL', live, message, KEYS[9])
  return {'dropped'}
end

local fields = {unpack(ARGV, 16)}

-- Replaces a live record only if the job is not active: it is that of its end, by another entry.
local function add_record()
  if redis.call('ZADD', active, 'NX', ARGV[7], job) == 1 then
    redis.call('SET', live, ARGV[14])
  else
    redis.call('SET', live, ARGV[14], 'NX')
  end
end

if holder then
  local due = clock(ARGV[1]) + defer_ms(lock, ARGV[11], ARGV[12])
  remove_all(stream, group, entry, message)
  add_record()
  local known = redis.call('HMGET', message, 'lost', 'running')
  if known[2] then
    -- Its process died: the record is outdated.
    redis.call('HSET', message, 'lost', (tonumber(known[1] or 0) or 0) + 1)
    redis.call('SET', live, ARGV[14])
  end
  redis.call('HDEL', message, 'entry', 'publishing', 'running', 'worker', 'started_at')
  redis.call('HSET', message, 'not_before', due, 'reason', 'pipeline_busy', 'max_attempts', ARGV[13], unpack(fields))
  redis.call('ZADD', delayed, due, job)
  return {'deferred', due}
end

local fence = lock_and_fence(lock, KEYS[7], ARGV[6], ARGV[8], ARGV[9], ARGV[10], clock_us(ARGV[1]))
local known = redis.call('HMGET', message, 'attempts', 'lost', 'running', 'entry')
local attempts = (tonumber(known[1] or 0) or 0) + 1
local lost = (tonumber(known[2] or 0) or 0) + (known[3] and 1 or 0)
if known[4] ~= entry then remove(stream, group, known[4]) end
redis.call('HSET', message, 'attempts', attempts, 'lost', lost, 'running', fence, 'worker', consumer, 'started_at',
  clock(ARGV[1]), 'entry', entry, 'max_attempts', ARGV[13], unpack(fields))
redis.call('HDEL', message, 'not_before', 'reason', 'publishing')
redis.call('XCLAIM', stream, group, consumer, 0, entry, 'JUSTID')
redis.call('ZREM', delayed, job)
add_record()
-- The pipeline's other queued jobs wait for this one, and are behind those of other pipelines then.
local due = clock(ARGV[1]) + defer_ms(lock, ARGV[11], ARGV[12])
for _, other in ipairs(redis.call('ZRANGE', active, 0, 999)) do
  local waiting = ARGV[15] .. other
  local state = other ~= job and redis.pcall('HMGET', waiting, 'entry', 'running')
  if state and not state.err and state[1] and not state[2] and is_queued(stream, group, state[1]) then
    defer(stream, group, delayed, waiting, other, state[1], due)
  end
end
return {'running', fence, attempts, lost, redis.call('HEXISTS', message, 'cancel')}
