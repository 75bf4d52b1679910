-- keys: rows
-- args: after until_id limit
-- Returns the id and the content of each row whose id is above `after`, up to `until_id`.
local reply = {}
for _, each in ipairs(call('XRANGE', rows, '(' .. after, until_id, 'COUNT', limit)) do
  reply[#reply + 1], reply[#reply + 2] = each[1], each[2][2]
end
return reply
