-- Claims the entries of workers without heartbeats.
-- KEYS: 1 stream
-- ARGV: 1 group, 2 consumer, 3 maximum entries, 4 ms without a heartbeat, 5 maximum entries checked
-- Returns: {how many entries were acknowledged because another program had deleted them, the entries: {entry, {name, value, …}}}
local bad = check(KEYS[1], 'stream')
if bad then return bad end
local stream, group, most = KEYS[1], ARGV[1], tonumber(ARGV[3])
local consumers = redis.pcall('XINFO', 'CONSUMERS', stream, group)
if consumers.err then
  -- Without a group nothing is pending.
  if string.find(consumers.err, 'NOGROUP', 1, true) or string.find(consumers.err, 'no such key', 1, true) then
    return {0, {}}
  end
  return consumers
end
local gone, claimed, checked, page_max = 0, {}, 0, 100
for _, properties in ipairs(consumers) do
  local consumer = {}
  for i = 1, #properties, 2 do consumer[properties[i]] = properties[i + 1] end
  local is_worker = consumer.name ~= queued_manual and consumer.name ~= queued_automatic
  local from = is_worker and consumer.pending > 0 and '-'
  while from and #claimed < most and checked < tonumber(ARGV[5]) do
    local page = redis.call('XPENDING', stream, group, from, '+', page_max, consumer.name)
    for _, pending in ipairs(page) do
      local entry = redis.call('XRANGE', stream, pending[1], pending[1])[1]
      checked = checked + 1
      if not entry then
        redis.call('XACK', stream, group, pending[1])
        gone = gone + 1
      elseif pending[3] >= tonumber(ARGV[4]) and #claimed < most then
        redis.call('XCLAIM', stream, group, ARGV[2], 0, entry[1], 'JUSTID')
        claimed[#claimed + 1] = entry
      end
    end
    from = #page == page_max and '(' .. page[#page][1]
  end
end
return {gone, claimed}
