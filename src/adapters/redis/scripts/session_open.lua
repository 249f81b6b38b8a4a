-- KEYS: 1 session
-- ARGV: 1 now, 2 idle ms, 3 maximum lifetime in ms
-- Returns: {created ms, ends ms}
local now = clock(ARGV[1])
local ends = now + tonumber(ARGV[3])
redis.call('SET', KEYS[1], string.format('%.0f %.0f', now, ends), 'PX', math.min(tonumber(ARGV[2]), tonumber(ARGV[3])))
return {now, ends}
