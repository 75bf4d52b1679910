-- keys: messages
-- args: cursor parts part with_payload
-- uses: states brief rows_of
-- Reads some of the messages whose ids belong to this part. Returns where to continue, which is 0 at
-- the end, and the rows.
local count = call('HEXISTS', states, 'large') == 1 and 1 or 1000
local scanned = call('HSCAN', messages, cursor, 'COUNT', count)
local keys, contents, reply = {}, {}, {scanned[1]}
for i = 1, #scanned[2], 2 do
  local key, content = scanned[2][i], scanned[2][i + 1]
  local _, _, id = find(content, '^(%d+) ')
  if tonumber(id) % tonumber(parts) == tonumber(part) then
    keys[#keys + 1], contents[#contents + 1] = key, content
  end
end
add_rows(reply, keys, contents)
return reply
