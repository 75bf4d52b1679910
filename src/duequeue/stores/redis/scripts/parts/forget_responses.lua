-- keys: responses
-- Delete the responses to earlier messages with these keys. It is done before a message can be
-- settled, so that none of them comes back.
local function forget_responses(keys)
  if call('EXISTS', responses) == 1 then call('HDEL', responses, unpack(keys)) end
end
