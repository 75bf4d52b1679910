-- keys: burials buried_at buried_keys
-- A burial: `asked attempts buried_at lengths of key and reason`, key, reason, `length payload
-- headers`. Its number is marked as ids are.
local function burial_of(text)  -- key, reason, when, and where the length of the payload begins
  local _, _, at, key_size, reason_size, start =
    find(text, '^%-?%d+ %d+ (%-?%d+) (%d+) (%d+) ()')
  local reason_at = start + key_size
  local tail_at = reason_at + reason_size
  return sub(text, start, reason_at - 1), sub(text, reason_at, tail_at - 1), at, tail_at
end

-- The numbers of the burials of a key, the newest first.
local function burials_of(key, most)
  local found = call('ZREVRANGEBYLEX', buried_keys, '[' .. key .. '\0\255', '[' .. key .. '\0',
    'LIMIT', 0, most)
  for i, each in ipairs(found) do found[i] = sub(each, #key + 2) end
  return found
end

local function delete_burial(number, key)
  call('HDEL', burials, number)
  call('ZREM', buried_at, number)
  call('ZREM', buried_keys, key .. '\0' .. number)
end
