-- keys: crons ticks
-- args: prefix config since
-- Returns the row or '', and the instants that have a note.
local from = prefix .. '\0' .. config .. '\0'
local reply = {call('HGET', crons, prefix) or ''}
local found = call('ZRANGEBYLEX', ticks, '[' .. from .. since, '(' .. prefix .. '\0' .. config .. '\1')
for i, member in ipairs(found) do reply[i + 1] = sub(member, #from + 1, #from + #since) end
return reply
