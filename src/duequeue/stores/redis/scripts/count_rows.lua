-- keys: rows
-- args: first last
-- Count rows between two ids, a thousand at most. Returns how many there are, and the ids of the
-- first and the last of them.
local found = call('XRANGE', rows, first, last, 'COUNT', 1000)
if #found == 0 then return {0, '', ''} end
return {#found, found[1][1], found[#found][1]}
