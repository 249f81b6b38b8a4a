-- Uses every writing command of the other scripts, so that a server that is full, read-only or lacks permissions rejects
-- this script as it would reject them.
-- KEYS: 1 probe
-- ARGV: 1 TTL ms
-- Returns: 1
local key = KEYS[1]
-- First a command that allocates memory: a full server rejects it only before the script's first write.
redis.call('SET', key, '1', 'PX', ARGV[1])
redis.call('DEL', key)
local entry = redis.call('XADD', key, '*', 'probe', '1')
redis.call('XGROUP', 'CREATE', key, 'probe', '0')
redis.call('XREADGROUP', 'GROUP', 'probe', 'probe', 'COUNT', 1, 'STREAMS', key, '>')
redis.call('XCLAIM', key, 'probe', 'probe', 0, entry)
redis.call('XACK', key, 'probe', entry)
redis.call('XDEL', key, entry)
redis.call('DEL', key)
redis.call('HSET', key, 'probe', '1')
redis.call('HSETNX', key, 'probe', '1')
redis.call('HINCRBY', key, 'probe', 1)
redis.call('RENAME', key, key)
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
