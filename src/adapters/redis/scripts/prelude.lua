-- Precedes every script, after a line of names: `message_fields`, the fields of a job's message; `job_field`,
-- `pipeline_field` and `kind_field`, three of them, and `automatic_kind`, the value of the last of an automatic job;
-- `queued_manual` and `queued_automatic`, the consumers of entries that no worker has claimed. A script reads and checks first
-- and writes then: an error has no partial effect.

-- The time in ms: `given` (by a test), or Redis's own if that is '0'.
local function clock(given)
  if given ~= '0' then return tonumber(given) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- The same in µs.
local function clock_us(given)
  if given ~= '0' then return tonumber(given) * 1000 end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- check(key, type, key, type, …): an error reply if a key has another type.
local function check(...)
  local wanted = {...}
  for i = 1, #wanted, 2 do
    local found = redis.call('TYPE', wanted[i])['ok']
    if found ~= 'none' and found ~= wanted[i + 1] then
      return redis.error_reply('WRONGTYPE ' .. wanted[i + 1] .. ' ' .. found .. ' ' .. wanted[i])
    end
  end
end

-- Whether a lock's token belongs to a start of this job.
local function is_for(token, job)
  return token and string.sub(token, 1, #job + 1) == job .. '/'
end

-- Time since the last heartbeat of a claimed job that no longer holds the lock, in ms; else false. A key of another type
-- counts as missing.
local function silence(stream, group, lock, message, job)
  local entry = redis.pcall('HGET', message, 'entry')
  if type(entry) ~= 'string' then return false end
  local holder = redis.pcall('GET', lock)
  if type(holder) == 'string' and is_for(holder, job) then return false end
  local pending = redis.pcall('XPENDING', stream, group, entry, entry, 1)
  if pending.err or not pending[1] then return false end
  return pending[1][3]
end

-- Whether the first of two whole numbers, as text without leading zeros, is greater. Lua's own numbers are exact only up
-- to 2^53.
local function exceeds(one, other)
  if #one ~= #other then return #one > #other end
  return one > other
end

-- An entry's two numbers.
local function numbers(entry) return string.match(entry or '', '^(%d+)%-(%d+)$') end

-- Whether the first of two entries is older.
local function precedes(one, other)
  local ms, seq = numbers(one)
  local other_ms, other_seq = numbers(other)
  if ms == other_ms then return exceeds(other_seq, seq) end
  return exceeds(other_ms, ms)
end

-- Deletes an entry of the stream, claimed or not.
local function remove(stream, group, entry)
  if entry and entry ~= '' then
    redis.pcall('XACK', stream, group, entry)
    redis.pcall('XDEL', stream, entry)
  end
end

-- Deletes the entry of a start, and the one that the message names if it differs.
local function remove_all(stream, group, entry, message)
  local named = redis.call('HGET', message, 'entry')
  remove(stream, group, entry)
  if named ~= entry then remove(stream, group, named) end
end

-- The message's fields (name, value, …) of a hash; nil if they are missing.
local function fields_of(message)
  local values = redis.pcall('HMGET', message, unpack(message_fields))
  if values.err or not values[1] or not values[2] then return nil end
  local fields = {}
  for i, name in ipairs(message_fields) do
    if values[i] then
      fields[#fields + 1] = name
      fields[#fields + 1] = values[i]
    end
  end
  return fields
end

-- The fields of a message's hash that `record.rs` reads, in its order. A job that doesn't run has the maximum attempts
-- that workers last set. A key of another type counts as missing.
local function known_of(message, attempts_max)
  local known = redis.pcall('HMGET', message, 'not_before', 'reason', 'attempts', 'max_attempts', 'running', 'worker',
    'started_at', unpack(message_fields))
  if known.err then return {} end
  local latest = redis.pcall('GET', attempts_max)
  if not known[5] and type(latest) == 'string' then known[4] = latest end
  return known
end

-- Adds a new job to the stream.
local function add_job(stream, live, active, message, job, record, enqueued, attempts_max, fields)
  local entry = redis.call('XADD', stream, '*', unpack(fields))
  redis.call('DEL', message)
  redis.call('HSET', message, 'entry', entry, 'max_attempts', attempts_max, unpack(fields))
  redis.call('ZADD', active, enqueued, job)
  redis.call('SET', live, record)
end

-- The changed keys of a window are a hash: each key is a field; the field '' has their bytes and the due time of the window,
-- or 'all'.

-- The bytes of a window's changed keys; nil if any key may have changed. `due` is that of the window, false if it is new. A
-- program that doesn't record keys leaves another due time, or no keys.
local function bytes_of_changed(changed, due)
  local state = redis.pcall('HGET', changed, '')
  if not state and not due and redis.call('EXISTS', changed) == 0 then return 0 end
  if type(state) ~= 'string' then return nil end
  local bytes, seen = string.match(state, '^(%d+) (%d+)$')
  if not bytes or due and tonumber(due) ~= tonumber(seen) then return nil end
  return tonumber(bytes)
end

-- Any key may have changed.
local function change_all(changed)
  redis.call('DEL', changed)
  redis.call('HSET', changed, '', 'all')
end

-- Makes the waiting jobs and the next window of a pipeline look at all keys. `jobs` is the prefix of the jobs' changed keys.
local function look_at_all(active, jobs, window)
  for _, job in ipairs(redis.call('ZRANGE', active, 0, 999)) do redis.call('DEL', jobs .. job) end
  change_all(window)
end

-- How long a job waits for its pipeline's lock, in ms: a margin longer than the lock lasts.
local function defer_ms(lock, margin, longest)
  local left = redis.call('PTTL', lock)
  if left < 0 then return tonumber(longest) end
  return math.min(left + tonumber(margin), tonumber(longest))
end

-- Whether no worker has claimed an entry.
local function is_queued(stream, group, entry)
  local pending = redis.pcall('XPENDING', stream, group, entry, entry, 1)
  if pending.err then return false end
  return not pending[1] or pending[1][2] == queued_manual or pending[1][2] == queued_automatic
end

-- Makes a queued job wait for its pipeline's lock.
local function defer(stream, group, delayed, message, job, entry, due)
  remove(stream, group, entry)
  redis.call('HDEL', message, 'entry')
  redis.call('HSET', message, 'not_before', due, 'reason', 'pipeline_busy')
  redis.call('ZADD', delayed, due, job)
end

-- Makes the oldest deferred job of a pipeline due, except `but`; a manual one first.
local function promote(active, delayed, messages, now, but)
  local chosen
  for _, job in ipairs(redis.call('ZRANGE', active, 0, 999)) do
    local due = job ~= but and redis.call('ZSCORE', delayed, job)
    local known = due and redis.pcall('HMGET', messages .. job, 'reason', kind_field)
    if known and known[1] == 'pipeline_busy' then
      local is_automatic = known[2] == automatic_kind
      if not chosen or not is_automatic then chosen = {job, tonumber(due)} end
      if not is_automatic then break end
    end
  end
  if chosen and chosen[2] > now then
    redis.call('ZADD', delayed, now, chosen[1])
    redis.call('HSET', messages .. chosen[1], 'not_before', now)
  end
end

-- Acquires the lock, which must be free; returns the new fence, as text.
local function lock_and_fence(lock, fences, slug, token, ttl, floor, now_us)
  local last = string.match(redis.call('HGET', fences, slug) or '', '^[1-9]%d*$') or '0'
  local least = exceeds(last, floor) and last or floor
  local fence = string.format('%.0f', now_us)
  if exceeds(fence, least) then
    redis.call('HSET', fences, slug, fence)
  else
    redis.call('HSET', fences, slug, least)
    redis.call('HINCRBY', fences, slug, 1)
    fence = redis.call('HGET', fences, slug)
  end
  redis.call('SET', lock, token, 'PX', ttl)
  return fence
end

-- Creates the stream and its group if missing; the store then counts as not initialized.
local function ensure_group(stream, group, epoch, adopted)
  local groups = redis.pcall('XINFO', 'GROUPS', stream)
  if not groups.err then
    for _, found in ipairs(groups) do
      for i = 1, #found, 2 do
        if found[i] == 'name' and found[i + 1] == group then return false end
      end
    end
  end
  redis.call('XGROUP', 'CREATE', stream, group, '0', 'MKSTREAM')
  -- Ids of a new stream may be lower than those of the old one.
  redis.call('DEL', epoch, adopted)
  return true
end

-- Adds an ended job to the index. Its position is `<16 hex digits of ms> <job id>`; the members of the sets of all
-- pipelines end with a space and the pipeline.
local function index_job(index, position, pipeline, failed)
  local member = position .. ' ' .. pipeline
  redis.call('ZADD', index.ended, 0, member)
  redis.call('ZADD', index.of_ended .. pipeline, 0, position)
  if failed then
    redis.call('ZADD', index.failed, 0, member)
    redis.call('ZADD', index.of_failed .. pipeline, 0, position)
  end
end

-- Removes jobs of one pipeline from the index.
local function unindex_jobs(index, positions, pipeline)
  for _, position in ipairs(positions) do
    local member = position .. ' ' .. pipeline
    redis.call('ZREM', index.ended, member)
    redis.call('ZREM', index.failed, member)
    redis.call('ZREM', index.of_ended .. pipeline, position)
    redis.call('ZREM', index.of_failed .. pipeline, position)
  end
end

-- Removes the oldest of more than `most` jobs.
local function trim_index(index, most)
  local over = redis.call('ZCARD', index.ended) - most
  if over <= 0 then return end
  local oldest = redis.call('ZRANGE', index.ended, 0, over - 1)
  for _, member in ipairs(oldest) do
    local position, pipeline = string.match(member, '^(%S+ %S+) (%S+)$')
    unindex_jobs(index, {position}, pipeline)
  end
  local since = tonumber(string.sub(oldest[#oldest], 1, 16), 16) + 1
  local known = tonumber(redis.call('HGET', index.state, 'since_ms') or 0)
  if since > known then redis.call('HSET', index.state, 'since_ms', string.format('%d', since)) end
end

-- The slugs of a set that are due and neither paused nor, if it is given, in another set, the longest due first.
local function due_slugs(set, pauses, except, now, most)
  local due, from = {}, 0
  if redis.call('HEXISTS', pauses, '*') == 1 then return due end
  repeat
    local some = redis.call('ZRANGEBYSCORE', set, '-inf', now, 'LIMIT', from, most)
    local paused = #some > 0 and redis.call('HMGET', pauses, unpack(some))
    for i, slug in ipairs(some) do
      local is_out = paused[i] or except and redis.call('ZSCORE', except, slug)
      if not is_out and #due < most then due[#due + 1] = slug end
    end
    from = from + #some
  until #some == 0 or #due == most
  return due
end
