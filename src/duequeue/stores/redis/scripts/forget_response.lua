-- keys: messages responses
-- args: key now
-- While a message with the key is in the queue, there is no response to it.
if call('HEXISTS', messages, key) == 1 then return 0 end
local _, _, expires = find(call('HGET', responses, key) or '', '^%-?%d+ (%-?%d+) ')
call('HDEL', responses, key)
return expires and tonumber(expires) > tonumber(now) and 1 or 0
