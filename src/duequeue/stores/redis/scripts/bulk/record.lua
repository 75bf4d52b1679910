-- lasting
-- keys: records
-- args: app counts now before
-- Counts that are older than the instant `before`, and that nobody has asked for, are deleted.
local all = call('HGETALL', records)
for i = 1, #all, 2 do
  local _, _, at = find(all[i + 1], '^(%d+) ')
  if tonumber(at) < tonumber(before) then call('HDEL', records, all[i]) end
end
return call('HSET', records, app, now .. ' ' .. counts)
