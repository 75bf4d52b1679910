-- keys: rows
-- args: before key
-- Looks at a thousand rows of a day, the newest first, from an id backwards. Returns the id before
-- which to continue, or ''. Then come id and row of each, or of each with the given key.
local found = call('XREVRANGE', rows, before, '-', 'COUNT', 1000)
local reply = {#found == 1000 and found[1000][1] or ''}
for _, each in ipairs(found) do
  local _, _, of = find(each[2][2], '^%S+ %S+ %S+ %S+ %S+ %S+ (.*)$')
  if key == '' or of == key then
    reply[#reply + 1], reply[#reply + 2] = each[1], each[2][2]
  end
end
return reply
