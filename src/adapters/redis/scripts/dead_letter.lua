-- Moves an entry to the dead letters.
-- KEYS: 1 stream, 2 dead
-- ARGV: 1 group, 2 entry, 3 dead letter, 4 maximum dead letters
-- Returns: 1 if the entry existed
local bad = check(KEYS[1], 'stream', KEYS[2], 'list')
if bad then return bad end
local acknowledged = redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
local deleted = redis.call('XDEL', KEYS[1], ARGV[2])
if acknowledged + deleted == 0 then return 0 end
redis.call('LPUSH', KEYS[2], ARGV[3])
redis.call('LTRIM', KEYS[2], 0, tonumber(ARGV[4]) - 1)
return 1
