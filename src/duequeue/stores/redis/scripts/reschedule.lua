-- lasting
-- keys: waiting leased ended messages states
-- args: key due
-- uses: ids states
-- Returns whether the message was found and is now due at the given time.
local content = call('HGET', messages, key)
if not content then return 0 end
local _, _, id, expires = find(content, '^(%d+) %-?%d+ (%S+) ')
if expires ~= '-' and tonumber(expires) <= tonumber(due) then return 0 end
local member = mark(id) .. key
call('ZREM', waiting, member)  -- first, because it frees memory
local attempts = revoke(id)
if attempts > 0 then call('HSET', states, id, '0 ' .. attempts .. ' ' .. due .. ' ' .. key) end
call('HSET', messages, key, (string.gsub(content, '^(%d+) %-?%d+ ', '%1 ' .. due .. ' ', 1)))
call('ZADD', waiting, due, member)
return 1
