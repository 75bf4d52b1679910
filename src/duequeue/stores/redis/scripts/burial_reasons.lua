-- keys: burials buried_at buried_keys
-- args: since from most_bytes
-- uses: burials
-- Look at a thousand burials since an instant, or as many as fit. Returns whether there may be more,
-- then reason and time of each.
local found = call('ZRANGEBYSCORE', buried_at, since, '+inf', 'LIMIT', from, 1000)
local reply, bytes = {#found == 1000 and 1 or 0}, 0
for i, number in ipairs(found) do
  bytes = bytes + call('HSTRLEN', burials, number)
  if i > 1 and bytes > tonumber(most_bytes) then
    reply[1] = 1
    break
  end
  local _, reason, at = burial_of(call('HGET', burials, number))
  reply[#reply + 1], reply[#reply + 2] = reason, at
end
return reply
