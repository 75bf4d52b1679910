-- keys: rows days
-- args: first last
-- Remove rows between two ids, a thousand at most. Returns how many it removed.
local ids = {}
for i, each in ipairs(call('XRANGE', rows, first, last, 'COUNT', 1000)) do ids[i] = each[1] end
if #ids > 0 then call('XDEL', rows, unpack(ids)) end
if call('XLEN', rows) == 0 then
  call('UNLINK', rows)
  call('SREM', days, (string.match(rows, '[^:]*$')))
end
return #ids
