-- keys: messages states
-- The content and the id of a message that is in the queue and was never claimed.
local function undelivered(key)
  local content = key ~= '' and call('HGET', messages, key)
  if not content then return false end
  local _, _, id = find(content, '^(%d+) ')
  local state, attempts, _ = call('HGET', states, id), 0, nil
  if state then _, attempts = state_of(state) end
  if attempts > 0 then return false end
  return content, id
end

-- The configuration, the instant and the key of a note of a prefix. Names that are refused today may
-- hold zeros.
local fifteen_digits = ('%d'):rep(15)
local function note_of(member, prefix)
  local _, _, config, at, key = find(member, '^(.-)%z(' .. fifteen_digits .. ')%z(.*)$', #prefix + 2)
  return config, at, key
end

local function notes_of(prefix)
  return call('ZRANGEBYLEX', ticks, '[' .. prefix .. '\0', '(' .. prefix .. '\1')
end
