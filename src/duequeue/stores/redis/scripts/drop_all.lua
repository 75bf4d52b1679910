-- lasting
-- keys: waiting leased ended messages states responses response_ends
-- args: now most_bytes
-- uses: ids states fitting history
-- Returns how many it dropped, and whether there may be more. With a history, it drops a thousand at a
-- time, or as many as fit.
call('UNLINK', responses, response_ends)
if not rows then
  local total = call('HLEN', messages)
  call('UNLINK', waiting, leased, ended, messages, states)
  return {total, 0}
end
local found = {}
for _, id in ipairs(call('ZRANGE', leased, 0, 999)) do
  local _, _, _, key = state_of(call('HGET', states, id))
  found[#found + 1] = {id, key}
end
if #found == 0 then
  for _, member in ipairs(call('ZRANGE', waiting, 0, 999)) do found[#found + 1] = {unmark(member)} end
end
local dropped = 0
for _, each in ipairs(found) do
  local id, key = each[1], each[2]
  if not fits(key) then break end
  dropped = dropped + 1
  local content = call('HGET', messages, key)
  call('HDEL', messages, key)
  call('ZREM', waiting, mark(id) .. key)
  keep(now, 'dropped', key, asked_of(content), revoke(id))
end
return {dropped, #found > 0 and 1 or 0}
