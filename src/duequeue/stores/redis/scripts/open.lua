-- keys: kinds
-- args: kind layout
-- Returns the number of a kind and the layout of the keys. A new kind gets the next number. The layout
-- is stored under the empty name, and is written once.
local found = call('HGET', kinds, '')
if found and found ~= layout then return {0, tonumber(found)} end
local number = call('HGET', kinds, kind)
if not number then
  if not found then call('HSET', kinds, '', layout) end
  number = call('HLEN', kinds)  -- the layout counts as one
  call('HSET', kinds, kind, number)
end
return {tonumber(number), tonumber(layout)}
