-- keys: kinds
local found = {}
for _, kind in ipairs(call('HKEYS', kinds)) do
  if kind ~= '' then found[#found + 1] = kind end  -- the empty name stores the layout
end
return found
