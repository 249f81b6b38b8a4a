-- Creates the records of jobs that other programs added to the stream, and advances the cursor.
-- KEYS: 1 stream, 2 adopted
-- ARGV: 1 last checked entry, 2 maximum attempts, 3 live records' prefix, 4 messages' prefix, 5 active jobs' prefix,
--       6 tombstones' prefix, 7… of each job: entry, job id, slug, enqueued ms, live record, the message's fields: name,
--       value
-- Returns: how many records it created
local bad = check(KEYS[1], 'stream', KEYS[2], 'string')
if bad then return bad end

local created = 0
local stride = 5 + 2 * #message_fields
for i = 7, #ARGV, stride do
  local entry, job, slug, enqueued = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local message, active = ARGV[4] .. job, ARGV[5] .. slug
  local mark = redis.pcall('GET', ARGV[6] .. slug)
  -- A job older than its pipeline's tombstone is dropped when it starts.
  local dropped = type(mark) == 'string' and tonumber(enqueued) <= (tonumber(mark) or 0)
  local score = redis.pcall('ZSCORE', active, job)
  if not dropped and not score and redis.call('EXISTS', message) == 0
    and #redis.call('XRANGE', KEYS[1], entry, entry) == 1 then
    redis.call('HSET', message, 'entry', entry, 'max_attempts', ARGV[2], unpack(ARGV, i + 5, i + stride - 1))
    redis.call('ZADD', active, enqueued, job)
    redis.call('SET', ARGV[3] .. job, ARGV[i + 4])
    created = created + 1
  end
end
local ms, seq = numbers(ARGV[1])
local last_ms, last_seq = numbers(redis.call('GET', KEYS[2]) or '')
if not last_ms or exceeds(ms, last_ms) or (ms == last_ms and exceeds(seq, last_seq)) then
  redis.call('SET', KEYS[2], ARGV[1])
end
return created
