-- How long the oldest due job has been due.
-- KEYS: 1 stream, 2 delayed
-- ARGV: 1 now
-- Returns: milliseconds; -1 if no job is due
local bad = check(KEYS[1], 'stream', KEYS[2], 'zset')
if bad then return bad end
local now, oldest = clock(ARGV[1]), -1
local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
if first then
  oldest = math.max(0, now - tonumber(string.match(first[1], '^%d+')))
end
local waiting = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
if waiting[2] and tonumber(waiting[2]) <= now then
  oldest = math.max(oldest, now - tonumber(waiting[2]))
end
return oldest
