-- keys: states leased ended
local function state_of(text)  -- token, attempts, due, key
  local _, _, token, attempts, due, at = find(text, '^(%d+) (%d+) (%-?%d+) ()')
  return token, tonumber(attempts), due, sub(text, at)
end

-- Forget that a message was ever claimed, and return how often it was.
local function revoke(id)
  local state = call('HGET', states, id)
  if not state then return 0 end
  local _, attempts = state_of(state)
  call('HDEL', states, id)
  if call('ZREM', leased, id) == 0 then call('ZREM', ended, id) end
  return attempts
end
