-- Lists notifications, newest first.
-- KEYS: 1 due notifications, 2 all notifications
-- ARGV: 1 the id before which to begin ('' for the newest), 2 most notifications, 3 prefix of notifications
-- Returns: for each its id, body, deliveries and due ms
local bad = check(KEYS[1], 'zset', KEYS[2], 'zset')
if bad then return bad end
local from = ARGV[1] == '' and '+' or '(' .. ARGV[1]
local listed = {}
for _, id in ipairs(redis.call('ZREVRANGEBYLEX', KEYS[2], from, '-', 'LIMIT', 0, ARGV[2])) do
  local item = redis.pcall('HMGET', ARGV[3] .. id, 'body', 'deliveries')
  if not item.err and item[1] then
    listed[#listed + 1] = {id, item[1], item[2] or '', redis.call('ZSCORE', KEYS[1], id) or ''}
  end
end
return listed
