-- Claims entries for a worker, in the order of `ClaimOrder`. Entries that no worker has claimed are pending for the consumer
-- of their kind, which this script reads them for. Defers jobs whose pipeline is locked, instead of claiming them, and
-- claims one job of a pipeline.
-- KEYS: 1 stream, 2 delayed
-- ARGV: 1 now, 2 group, 3 consumer, 4 maximum entries, 5 maximum automatic ones, 6 maximum entries read,
--       7 maximum entries checked, 8 how many manual entries in a row were claimed before an older automatic one,
--       9 its maximum, 10 messages' prefix, 11 locks' prefix, 12 defer margin ms, 13 longest defer ms
-- Returns: {'no_group'}, {'more'} if it has to be called again, or {'claimed', the new value of argument 8, the last entry's id,
--          the claimed entries: {entry, {name, value, …}}}
local bad = check(KEYS[1], 'stream', KEYS[2], 'zset')
if bad then return bad end
local stream, delayed, group = KEYS[1], KEYS[2], ARGV[2]
local now = clock(ARGV[1])

-- The first of several fields with one name counts.
local function value_of(fields, name)
  for i = 1, #fields, 2 do
    if fields[i] == name then return fields[i + 1] end
  end
end

local read = redis.pcall('XREADGROUP', 'GROUP', group, queued_manual, 'COUNT', ARGV[6], 'STREAMS', stream, '>')
if read and read.err then
  if string.find(read.err, 'NOGROUP', 1, true) then return {'no_group'} end
  return read
end
local new = read and read[1] and read[1][2] or {}
local automatic = {}
for _, entry in ipairs(new) do
  if value_of(entry[2], kind_field) == automatic_kind then
    -- A cancelled job ends as soon as a manual one would start.
    local job = value_of(entry[2], job_field)
    local is_cancelled = job and redis.pcall('HEXISTS', ARGV[10] .. job, 'cancel') == 1
    if not is_cancelled then automatic[#automatic + 1] = entry[1] end
  end
end
if #automatic > 0 then
  automatic[#automatic + 1] = 'JUSTID'
  redis.call('XCLAIM', stream, group, queued_automatic, 0, unpack(automatic))
end
if #new >= tonumber(ARGV[6]) then return {'more'} end

-- Defers the job of an entry if another holds the lock of its pipeline. One without a record is left to its start.
local function is_deferred(entry)
  local job, slug = value_of(entry[2], job_field), value_of(entry[2], pipeline_field)
  if not job or not slug then return false end
  local lock, message = ARGV[11] .. slug, ARGV[10] .. job
  local holder = redis.pcall('GET', lock)
  if type(holder) ~= 'string' or is_for(holder, job) then return false end
  local known = redis.pcall('HMGET', message, 'entry', 'running', pipeline_field)
  if known.err or known[1] ~= entry[1] or known[2] or known[3] ~= slug then return false end
  defer(stream, group, delayed, message, job, entry[1], now + defer_ms(lock, ARGV[12], ARGV[13]))
  return true
end

local checked, checked_max, taken = 0, tonumber(ARGV[7]), {}

local function is_taken(entry)
  local slug = value_of(entry[2], pipeline_field)
  return slug and taken[slug]
end

-- The oldest entry of a kind whose pipeline is neither locked nor taken.
local function head(queue)
  while not queue.head and checked < checked_max do
    if queue.at > #queue.page then
      queue.page, queue.at = redis.call('XPENDING', stream, group, queue.from, '+', 20, queue.consumer), 1
      if #queue.page == 0 then return nil end
      queue.from = '(' .. queue.page[#queue.page][1]
    end
    local id = queue.page[queue.at][1]
    queue.at, checked = queue.at + 1, checked + 1
    local entry = redis.call('XRANGE', stream, id, id)[1]
    if not entry then
      -- Another program deleted it.
      redis.call('XACK', stream, group, id)
    elseif not is_taken(entry) and not is_deferred(entry) then
      queue.head = entry
    end
  end
  return queue.head
end

local function queue_of(consumer) return {consumer = consumer, from = '-', page = {}, at = 1} end
local manual_queue, automatic_queue = queue_of(queued_manual), queue_of(queued_automatic)
local preferred, left, claimed = tonumber(ARGV[8]), tonumber(ARGV[5]), {}
while #claimed < tonumber(ARGV[4]) do
  local manual, auto = head(manual_queue), nil
  if left > 0 then auto = head(automatic_queue) end
  -- Otherwise a kind may not have been checked to its end.
  if checked >= checked_max and not (manual and (auto or left <= 0)) then break end
  if not manual and not auto then break end
  local older = manual and auto and precedes(auto[1], manual[1])
  local queue = manual_queue
  if not manual or older and preferred >= tonumber(ARGV[9]) then queue = automatic_queue end
  if queue == automatic_queue then
    preferred, left = 0, left - 1
  elseif older then
    preferred = preferred + 1
  elseif left > 0 then
    preferred = 0
  end
  claimed[#claimed + 1] = queue.head
  redis.call('XCLAIM', stream, group, ARGV[3], 0, queue.head[1], 'JUSTID')
  taken[value_of(queue.head[2], pipeline_field) or ''] = true
  for _, any in ipairs({manual_queue, automatic_queue}) do
    if any == queue or any.head and is_taken(any.head) then any.head = nil end
  end
end
if #claimed == 0 and checked >= checked_max then return {'more'} end
local last = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
return {'claimed', preferred, last and last[1] or '0-0', claimed}
