-- lasting
-- keys: waiting messages
-- args: now key sender kind expires reason
-- uses: ids states history responses
local content = call('HGET', messages, key)
if not content then return 0 end
local _, _, id = find(content, '^(%d+) ')
call('HDEL', messages, key)  -- first, because it frees memory
call('ZREM', waiting, mark(id) .. key)
keep(now, 'dropped', key, asked_of(content), revoke(id))
clear_expired(now, 1)
respond(now, key, expires, 'r' .. reason)
wake_awaiting(sender, kind, {key})
return 1
