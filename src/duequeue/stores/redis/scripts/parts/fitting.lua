-- keys: messages states
-- Returns whether a script may read one more message. All of them together may have `most_bytes`, but
-- the first one always fits. Sizes matter only once a large message was stored.
local looks_at_sizes, bytes_read = nil, 0
local function all_fit()
  if looks_at_sizes == nil then looks_at_sizes = call('HEXISTS', states, 'large') == 1 end
  return not looks_at_sizes
end
local function fits(key)
  if all_fit() then return true end
  local is_first = bytes_read == 0
  bytes_read = bytes_read + call('HSTRLEN', messages, key)
  return is_first or bytes_read <= tonumber(most_bytes)
end

-- How many of the messages with these keys fit.
local function fitting(keys)
  if all_fit() then return #keys end
  for i, key in ipairs(keys) do
    if not fits(key) then return i - 1 end
  end
  return #keys
end
