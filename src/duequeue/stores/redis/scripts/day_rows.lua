-- keys: rows
-- args: after until_id limit
-- Returns id and row of each row with an id after one and up to another.
local reply = {}
for _, each in ipairs(call('XRANGE', rows, '(' .. after, until_id, 'COUNT', limit)) do
  reply[#reply + 1], reply[#reply + 2] = each[1], each[2][2]
end
return reply
