-- Extends a lease, and keeps its entry claimed.
-- KEYS: 1 stream, 2 message, 3 lock
-- ARGV: 1 group, 2 consumer, 3 entry, 4 token, 5 lock TTL ms
-- Returns: 'held', 'cancelled' (and held) or 'lost'
local bad = check(KEYS[2], 'hash', KEYS[3], 'string')
if bad then return bad end
if redis.call('GET', KEYS[3]) ~= ARGV[4] then return 'lost' end
redis.call('PEXPIRE', KEYS[3], ARGV[5])
redis.pcall('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[3], 'JUSTID')
if redis.call('HEXISTS', KEYS[2], 'cancel') == 1 then return 'cancelled' end
return 'held'
