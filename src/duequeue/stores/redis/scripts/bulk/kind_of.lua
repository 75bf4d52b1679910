-- keys: kinds
-- args: number
-- The empty name is not a kind, because it stores the layout.
local all = call('HGETALL', kinds)
for i = 1, #all, 2 do if all[i] ~= '' and all[i + 1] == number then return all[i] end end
return false
