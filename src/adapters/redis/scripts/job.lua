-- A job's records.
-- KEYS: 1 live, 2 active, 3 message, 4 lock, 5 stream, 6 maximum attempts
-- ARGV: 1 job id, 2 group
-- Returns: {1 if active, ms since the last heartbeat or nil, live record or nil, then of the message: not_before, reason, attempts,
--          max_attempts, running, worker, started_at, its fields}
local bad = check(KEYS[1], 'string', KEYS[2], 'zset', KEYS[3], 'hash')
if bad then return bad end
return {
  redis.call('ZSCORE', KEYS[2], ARGV[1]) and 1 or 0,
  silence(KEYS[5], ARGV[2], KEYS[4], KEYS[3], ARGV[1]),
  redis.call('GET', KEYS[1]),
  unpack(known_of(KEYS[3], KEYS[6])),
}
