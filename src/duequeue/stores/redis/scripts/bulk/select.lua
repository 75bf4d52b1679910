-- keys: messages
-- args: with_payload most_bytes
-- uses: states brief rows_of fitting
-- The rest: keys. Returns how many of them it has looked up, and the rows of those that are there.
local keys, contents, reply = {}, {}, {0}
for i = rest, #ARGV do
  if not fits(ARGV[i]) then break end
  local content = call('HGET', messages, ARGV[i])
  if content then keys[#keys + 1], contents[#contents + 1] = ARGV[i], content end
  reply[1] = i - rest + 1
end
add_rows(reply, keys, contents)
return reply
