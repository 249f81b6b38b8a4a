-- Entries after the last that was checked for jobs of other programs; for those of a job without a record, their message
-- fields.
-- KEYS: 1 stream, 2 adopted
-- ARGV: 1 messages' prefix, 2 maximum entries, 3 longest job id, 4 maximum bytes of a value
-- Returns: {the last entry, or nil if there is none, a list of {entry, {name, value, …}}}
local bad = check(KEYS[1], 'stream', KEYS[2], 'string')
if bad then return bad end
local names = {}
for _, name in ipairs(message_fields) do names[name] = true end
local last = string.match(redis.call('GET', KEYS[2]) or '', '^%d+%-%d+$')
local entries = redis.call('XRANGE', KEYS[1], last and '(' .. last or '-', '+', 'COUNT', ARGV[2])
local found = {}
for _, entry in ipairs(entries) do
  local fields, seen = {}, {}
  for i = 1, #entry[2], 2 do
    local name = entry[2][i]
    -- The first of several fields with one name counts.
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
