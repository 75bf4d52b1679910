-- keys: states leased ended
local function state_of(text)  -- token, attempts, due, key
  local _, _, token, attempts, due, at = find(text, '^(%d+) (%d+) (%-?%d+) ()')
  return token, tonumber(attempts), due, sub(text, at)
end

-- How many leases in a row a message had lost before its next one, as port/fencing.py counts. A message
-- that is not leased keeps this number with a zero before it, where the other stores have a minus.
local function losses_before(token)
  if sub(token, 1, 1) == '0' then return tonumber(token) end
  local digit = tonumber(sub(token, -1))
  return digit >= 5 and 4 or math.min(digit + 1, 3)
end

-- Return the token of the next lease after these losses.
local function token_after(losses, token)
  if losses == 0 then return token end
  return sub(token, 1, -2) .. tonumber(sub(token, -1)) + losses
end

-- Return what a message keeps that is given back.
local function given_back(token)
  local losses = tonumber(sub(token, -1)) % 5
  return losses == 0 and '0' or '0' .. losses
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
