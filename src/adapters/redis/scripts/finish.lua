-- Ends a running job, and releases the lock.
-- KEYS: 1 stream, 2 delayed, 3 live, 4 active, 5 message, 6 lock
-- ARGV: 1 now, 2 group, 3 entry, 4 job id, 5 token, 6 live record, 7 its TTL in ms, 8 messages' prefix,
--       9 prefix of the jobs' changed keys, 10 the window's changed keys, 11 tombstone, 12 1 if the job completed
-- Returns: 'done' or 'lost'
local bad = check(KEYS[1], 'stream', KEYS[2], 'zset', KEYS[4], 'zset', KEYS[5], 'hash', KEYS[6], 'string')
if bad then return bad end
local delayed, active, message, lock, job = KEYS[2], KEYS[4], KEYS[5], KEYS[6], ARGV[4]
if redis.call('GET', lock) ~= ARGV[5] then return 'lost' end
remove_all(KEYS[1], ARGV[2], ARGV[3], message)
redis.call('ZREM', active, job)
redis.call('ZREM', delayed, job)
redis.call('DEL', message, lock, ARGV[9] .. job)
if ARGV[12] ~= '1' and redis.call('EXISTS', ARGV[11]) == 0 then look_at_all(active, ARGV[9], ARGV[10]) end
redis.call('SET', KEYS[3], ARGV[6], 'PX', ARGV[7])
promote(active, delayed, ARGV[8], clock(ARGV[1]), job)
return 'done'
