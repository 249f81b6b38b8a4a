-- The newest job of each pipeline that completed, and the newest that failed.
-- KEYS: none
-- ARGV: 1 prefix of a pipeline's ended jobs, 2 prefix of its failed ones, 3 maximum jobs searched of each; then the pipelines
-- Returns: of each pipeline {the position of the one that completed or '', that of the one that failed or ''}
local newest, page_max = {}, 100
for i = 4, #ARGV do
  local ended, failed = ARGV[1] .. ARGV[i], ARGV[2] .. ARGV[i]
  local bad = check(ended, 'zset', failed, 'zset')
  if bad then return bad end
  local at, searched, completed = '+', 0, nil
  repeat
    local page = redis.call('ZREVRANGEBYLEX', ended, at, '-', 'LIMIT', 0, page_max)
    for _, position in ipairs(page) do
      if not redis.call('ZSCORE', failed, position) then
        completed = position
        break
      end
    end
    searched = searched + #page
    at = '(' .. (page[#page] or '')
  until completed or #page < page_max or searched >= tonumber(ARGV[3])
  local last_failed = redis.call('ZREVRANGEBYLEX', failed, '+', '-', 'LIMIT', 0, 1)[1]
  newest[#newest + 1] = {completed or '', last_failed or ''}
end
return newest
