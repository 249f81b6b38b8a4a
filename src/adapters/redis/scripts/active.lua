-- The active jobs of a pipeline, oldest first. A key of another type counts as missing, so that a malformed record hides
-- no others.
-- KEYS: 1 active, 2 lock, 3 stream, 4 maximum attempts
-- ARGV: 1 live records' prefix, 2 messages' prefix, 3 maximum jobs, 4 group
-- Returns: a list of {job id, ms since the last heartbeat or nil, live record or nil, then of the message: not_before, reason,
--          attempts, max_attempts, running, worker, started_at, its fields}
local bad = check(KEYS[1], 'zset')
if bad then return bad end
local jobs = {}
for _, job in ipairs(redis.call('ZRANGE', KEYS[1], 0, tonumber(ARGV[3]) - 1)) do
  local live = redis.pcall('GET', ARGV[1] .. job)
  if type(live) == 'table' then live = false end
  local silent = silence(KEYS[3], ARGV[4], KEYS[2], ARGV[2] .. job, job)
  jobs[#jobs + 1] = {job, silent, live, unpack(known_of(ARGV[2] .. job, KEYS[4]))}
end
return jobs
