-- Removes the due request of a run, and adds its job to the stream. A window of the pipeline takes the request instead.
-- KEYS: 1 requests, 2 windows, 3 stream, 4 live, 5 active, 6 message
-- ARGV: 1 now, 2 slug, 3 job id, 4 live record, 5 enqueued ms, 6 maximum attempts, 7… the message's fields
-- Returns: 1, or 0 if there is no due request, or a window
local bad = check(KEYS[1], 'zset', KEYS[2], 'zset', KEYS[3], 'stream', KEYS[5], 'zset')
if bad then return bad end
local due = redis.call('ZSCORE', KEYS[1], ARGV[2])
if not due or tonumber(due) > clock(ARGV[1]) or redis.call('ZSCORE', KEYS[2], ARGV[2]) then return 0 end
redis.call('ZREM', KEYS[1], ARGV[2])
add_job(KEYS[3], KEYS[4], KEYS[5], KEYS[6], ARGV[3], ARGV[4], ARGV[5], ARGV[6], {unpack(ARGV, 7)})
return 1
