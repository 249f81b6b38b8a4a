-- Requeues active jobs that are neither in the stream nor waiting.
-- KEYS: 1 stream, 2 delayed, 3 active, 4 lock
-- ARGV: 1 group, 2 live records' prefix, 3 messages' prefix, 4 prefix of the jobs' changed keys, 5 the window's changed keys,
--       6… job ids
-- Returns: the ids of the requeued jobs
local bad = check(KEYS[1], 'stream', KEYS[2], 'zset', KEYS[3], 'zset', KEYS[4], 'string')
if bad then return bad end
local stream, delayed, active = KEYS[1], KEYS[2], KEYS[3]
local holder = redis.call('GET', KEYS[4])

-- The message's fields from the live record; nil if it is missing or terminal.
local function fields_of_record(live)
  local text = redis.pcall('GET', live)
  if type(text) ~= 'string' then return nil end
  local read, job = pcall(cjson.decode, text)
  if not read or type(job) ~= 'table' or job.status == 'completed' or job.status == 'failed' then return nil end
  local fields = {}
  for _, name in ipairs(message_fields) do
    local value = job[name]
    if type(value) ~= 'string' and type(value) ~= 'boolean' then return nil end
    fields[#fields + 1] = name
    fields[#fields + 1] = tostring(value)
  end
  return fields
end

local function in_stream(entry)
  if not entry then return false end
  local found = redis.pcall('XRANGE', stream, entry, entry)
  return not found.err and #found == 1
end

local requeued = {}
for i = 6, #ARGV do
  local job = ARGV[i]
  local message = ARGV[3] .. job
  if redis.call('ZSCORE', active, job) and not is_for(holder, job) then
    local fields = fields_of(message)
    local waits = redis.call('ZSCORE', delayed, job)
    local entry = redis.pcall('HGET', message, 'entry')
    if type(entry) ~= 'string' then entry = false end
    if fields and (waits or in_stream(entry)) then
      -- Nothing is lost.
    else
      local known = fields or fields_of_record(ARGV[2] .. job)
      if redis.call('TYPE', message)['ok'] ~= 'hash' then redis.call('DEL', message) end
      if not known then
        remove(stream, ARGV[1], entry)
        redis.call('ZREM', active, job)
        redis.call('ZREM', delayed, job)
        redis.call('DEL', message, ARGV[4] .. job)
        look_at_all(active, ARGV[4], ARGV[5])
      elseif waits then
        redis.call('HSET', message, unpack(known))
      else
        remove(stream, ARGV[1], entry)
        entry = redis.call('XADD', stream, '*', unpack(known))
        redis.call('HSET', message, 'entry', entry, unpack(known))
        redis.call('HDEL', message, 'not_before', 'reason')
        requeued[#requeued + 1] = job
      end
    end
  end
end
return requeued
