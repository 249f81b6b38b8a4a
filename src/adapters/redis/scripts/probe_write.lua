-- Writes by each kind of command that the other scripts write by, so that a server that is full, read-only or grants too
-- little refuses this one as it would refuse them.
-- KEYS: 1 probe
-- ARGV: 1 TTL ms
-- Returns: 1
local key = KEYS[1]
-- First what takes memory: a server that is full refuses that only as long as the script has written nothing.
redis.call('SET', key, '1', 'PX', ARGV[1])
redis.call('DEL', key)
local entry = redis.call('XADD', key, '*', 'probe', '1')
redis.call('XGROUP', 'CREATE', key, 'probe', '0')
redis.call('XCLAIM', key, 'probe', 'probe', 0, entry)
redis.call('XACK', key, 'probe', entry)
redis.call('XDEL', key, entry)
redis.call('DEL', key)
redis.call('HSET', key, 'probe', '1')
redis.call('HINCRBY', key, 'probe', 1)
redis.call('HDEL', key, 'probe')
redis.call('ZADD', key, 1, 'probe')
redis.call('ZREM', key, 'probe')
redis.call('LPUSH', key, 'probe')
redis.call('LTRIM', key, 0, 0)
redis.call('DEL', key)
redis.call('SET', key, '1', 'PX', ARGV[1])
redis.call('EXPIRE', key, 60)
redis.call('PEXPIRE', key, ARGV[1])
return 1
