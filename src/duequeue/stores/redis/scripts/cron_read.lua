-- keys: crons ticks forgotten messages states
-- args: prefix config
-- uses: states ticks
-- Returns the row or '', and until when ticks of the configuration are forgotten or ''. For each note,
-- it then returns its configuration, instant and key, and whether the message is undelivered (2), live
-- (1) or gone (0).
local reply = {call('HGET', crons, prefix) or '',
  call('HGET', forgotten, prefix .. '\0' .. config) or ''}
for _, member in ipairs(notes_of(prefix)) do
  local each, at, key = note_of(member, prefix)
  local life = undelivered(key) and 2 or key ~= '' and call('HEXISTS', messages, key) or 0
  for _, part in ipairs({each, at, key, life}) do reply[#reply + 1] = part end
end
return reply
