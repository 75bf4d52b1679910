-- lasting
-- keys: waiting leased ended messages states
-- args: now sender kind most_bytes
-- uses: ids states held fitting history responses
-- The rest: id, token, when it was delivered, time of the handler, response, and when that expires.
-- Returns 1 for each message that was held and is now gone, and 0 for each other one. With a history,
-- the script reads the messages, and handles only the first ones that fit.
local ids, keys, members, about = {}, {}, {}, {}
local won = held(6, function(id, attempts, _, key, at)
  local n = #ids + 1
  ids[n], keys[n], members[n] = id, key, mark(id) .. key
  about[n] = {attempts, ARGV[at + 2], ARGV[at + 3], at}
end, rows and fits)
if #ids > 0 then
  unlease(ids, members)  -- first, because it frees memory
  if rows then
    for i, content in ipairs(call('HMGET', messages, unpack(keys))) do
      keep(now, 'acked', keys[i], asked_of(content), unpack(about[i], 1, 3))
    end
  end
  call('HDEL', states, unpack(ids))
  call('HDEL', messages, unpack(keys))
  clear_expired(now, #ids)
  for i, key in ipairs(keys) do
    local at = about[i][4]
    respond(now, key, ARGV[at + 5], 'a' .. ARGV[at + 4])
  end
  wake_awaiting(sender, kind, keys)
end
return won
