-- Locks a pipeline for an operation other than a run.
-- KEYS: 1 lock, 2 fences
-- ARGV: 1 now, 2 slug, 3 token, 4 TTL ms, 5 fence floor
-- Returns: the fence, or nil if the pipeline is locked
local bad = check(KEYS[1], 'string', KEYS[2], 'hash')
if bad then return bad end
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
return lock_and_fence(KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4], ARGV[5], clock_us(ARGV[1]))
