-- Changes the state of a condition, and adds or deletes its notification; or adds one without a condition.
-- KEYS: 1 the condition's state, 2 due notifications, 3 all notifications
-- ARGV: 1 now, 2 'condition' or 'none', 3 expected state ('' if none), 4 new state, 5 its TTL in ms, 6 id of the
--       notification to add ('' if none), 7 its body, 8 when it is due in ms (0: now), 9 id of the one to delete ('' if
--       none), 10 prefix of notifications, 11 most notifications
-- Returns: 'changed', 'conflict' or 'full'
local bad = check(KEYS[1], 'string', KEYS[2], 'zset', KEYS[3], 'zset')
if bad then return bad end
local with_condition = ARGV[2] == 'condition'
if with_condition then
  local state = redis.call('GET', KEYS[1]) or ''
  -- Repeated after a lost reply.
  if state == ARGV[4] and state ~= ARGV[3] then return 'changed' end
  if state ~= ARGV[3] then return 'conflict' end
end
local id, prefix = ARGV[6], ARGV[10]
local function is_claimed(one) return redis.pcall('HEXISTS', prefix .. one, 'token') == 1 end
local adds = id ~= '' and redis.call('EXISTS', prefix .. id) == 0
if adds and redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[11]) then
  local oldest
  for _, one in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
    if not redis.call('ZSCORE', KEYS[2], one) then oldest = one break end
  end
  if not oldest then return 'full' end
  redis.call('ZREM', KEYS[3], oldest)
  redis.call('DEL', prefix .. oldest)
end
if with_condition then redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5]) end
local gone = ARGV[9]
if gone ~= '' and not is_claimed(gone) then
  redis.call('ZREM', KEYS[2], gone)
  redis.call('ZREM', KEYS[3], gone)
  redis.call('DEL', prefix .. gone)
end
if id ~= '' and (adds or not is_claimed(id)) then
  local due = tonumber(ARGV[8])
  redis.call('HSET', prefix .. id, 'body', ARGV[7])
  redis.call('ZADD', KEYS[3], 0, id)
  redis.call('ZADD', KEYS[2], due > 0 and due or clock(ARGV[1]), id)
end
return 'changed'
