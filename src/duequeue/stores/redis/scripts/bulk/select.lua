-- keys: messages
-- args: with_payload
-- uses: states brief rows_of
-- The rest: keys. Returns the rows of those that are there.
local keys, contents, reply = {}, {}, {}
for i = rest, #ARGV do
  local content = call('HGET', messages, ARGV[i])
  if content then keys[#keys + 1], contents[#contents + 1] = ARGV[i], content end
end
add_rows(reply, keys, contents)
return reply
