-- Adds a job to the stream, with its live record.
-- KEYS: 1 stream, 2 live, 3 active, 4 message
-- ARGV: 1 job id, 2 live record, 3 enqueued ms, 4 maximum attempts, 5… the message's fields: name, value
-- Returns: 'queued', or 'active' if a job of any pipeline with this id is
local bad = check(KEYS[1], 'stream', KEYS[3], 'zset')
if bad then return bad end
if redis.call('ZSCORE', KEYS[3], ARGV[1]) or redis.call('TYPE', KEYS[4])['ok'] == 'hash' then return 'active' end
add_job(KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[2], ARGV[3], ARGV[4], {unpack(ARGV, 5)})
return 'queued'
