-- keys: rows days
-- args: day before limit
-- Delete rows of a day that were settled before an instant; without an instant, the whole day.
-- Returns whether there may be more.
if before == '' then
  call('UNLINK', rows)
  call('SREM', days, day)
  return 0
end
local found, old = call('XRANGE', rows, '-', '+', 'COUNT', limit), {}
for _, each in ipairs(found) do
  local _, _, at = find(each[2][2], '^(%-?%d+) ')
  if tonumber(at) < tonumber(before) then old[#old + 1] = each[1] end
end
if #old > 0 then call('XDEL', rows, unpack(old)) end
return #old == tonumber(limit) and 1 or 0
