-- keys: staged_keys chosen
-- args: part first
-- If several parts have the same key, one record is chosen: the last one that may replace, or else
-- the first one. The parts are passed in order. Returns how many rows were looked at, which is at most 1000.
local names = call('LRANGE', staged_keys, 2 * first, 2 * first + 1999)
for i = 1, #names, 2 do
  local place = part .. ':' .. format('%d', first + (i - 1) / 2)
  call(names[i + 1] == '1' and 'HSET' or 'HSETNX', chosen, names[i], place)
end
return #names / 2
