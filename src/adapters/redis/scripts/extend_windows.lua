-- Opens or extends debounce windows: due after a quiet period, or the longest wait after the first event. Adds the keys that
-- changed.
-- KEYS: 1 windows, 2 first events
-- ARGV: 1 now, 2 quiet ms, 3 longest wait ms, 4 prefix of the windows' changed keys, 5 maximum keys of a window, 6 their
--       maximum bytes, 7… of each window: slug, number of keys or 'all', keys
-- Returns: when each was opened, in ms
local bad = check(KEYS[1], 'zset', KEYS[2], 'hash')
if bad then return bad end
local now, opened = clock(ARGV[1]), {}
local i = 7
while i <= #ARGV do
  local slug, count = ARGV[i], tonumber(ARGV[i + 1])
  local due_before = redis.call('ZSCORE', KEYS[1], slug)
  local first = due_before and tonumber(redis.call('HGET', KEYS[2], slug) or '')
  if not first or first > now then
    first = now
    redis.call('HSET', KEYS[2], slug, first)
  end
  opened[#opened + 1] = first
  local due = math.min(now + tonumber(ARGV[2]), first + tonumber(ARGV[3]))
  redis.call('ZADD', KEYS[1], due, slug)

  local changed = ARGV[4] .. slug
  local bytes = count and bytes_of_changed(changed, due_before)
  for at = i + 2, i + 1 + (count or 0) do
    if bytes and redis.call('HSETNX', changed, ARGV[at], '') == 1 then bytes = bytes + #ARGV[at] end
  end
  if bytes then redis.call('HSET', changed, '', string.format('%.0f %.0f', bytes, due)) end
  if not bytes or bytes > tonumber(ARGV[6]) or redis.call('HLEN', changed) > tonumber(ARGV[5]) + 1 then
    change_all(changed)
  end
  i = i + 2 + (count or 0)
end
return opened
