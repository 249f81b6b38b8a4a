-- Entries after the last that was looked at for jobs of other programs; of those that name a job without a record also
-- the fields of a message.
-- KEYS: 1 stream, 2 adopted
-- ARGV: 1 messages' prefix, 2 entries at most, 3 longest job id, 4 bytes of a value that are kept
-- Returns: {the last entry, or nil if there is none, a list of {entry, {name, value, …}}}
local bad = check(KEYS[1], 'stream', KEYS[2], 'string')
if bad then return bad end
local names = {job_id = 1, pipeline = 1, prefix = 1, clean_run = 1, trigger = 1, enqueued_at = 1}
local last = string.match(redis.call('GET', KEYS[2]) or '', '^%d+%-%d+$')
local entries = redis.call('XRANGE', KEYS[1], last and '(' .. last or '-', '+', 'COUNT', ARGV[2])
local found = {}
for _, entry in ipairs(entries) do
  local fields, seen = {}, {}
  for i = 1, #entry[2], 2 do
    local name = entry[2][i]
    -- Of several fields of one name the first counts.
    if names[name] and not seen[name] then
      seen[name] = entry[2][i + 1]
      fields[#fields + 1] = name
      fields[#fields + 1] = string.sub(seen[name], 1, tonumber(ARGV[4]))
    end
  end
  local job = seen['job_id']
  if job and #job <= tonumber(ARGV[3]) and redis.call('EXISTS', ARGV[1] .. job) == 0 then
    found[#found + 1] = {entry[1], fields}
  end
end
return {#entries > 0 and entries[#entries][1] or false, found}
