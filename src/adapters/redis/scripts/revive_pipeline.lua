-- Removes a pipeline's tombstone. The next window's job looks at all keys.
-- KEYS: 1 tombstone, 2 the window's changed keys
-- ARGV: none
-- Returns: 1 if there was one
change_all(KEYS[2])
return redis.call('DEL', KEYS[1])
