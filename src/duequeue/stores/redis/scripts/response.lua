-- keys: messages responses awaiting
-- args: key now channel
-- Returns 1 if the message is in the queue, 0 if there is nothing, else the response.
local found = 1
if call('HEXISTS', messages, key) == 0 then
  found = call('HGET', responses, key) or 0
  local _, _, expires = find(found, '^%-?%d+ (%-?%d+) ')
  if expires and tonumber(expires) <= tonumber(now) then found = 0 end
end
-- A process that found nothing waits for wake-ups. A full server may refuse that. The process then
-- finds the response at its regular looks.
if channel ~= '' and (found == 0 or found == 1) then redis.pcall('SADD', awaiting, channel) end
return found
