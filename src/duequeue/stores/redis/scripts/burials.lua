-- lasting
-- keys: burials buried_at buried_keys
-- args: reason due most_bytes
-- uses: ids burials large revive
-- The rest: number, and the note of the tick without its key or ''. Revives those that are the
-- newest burial of their key with that reason. Stops when it has read a thousand burials or
-- `most_bytes`. Returns how many it revived, and how many of the rest it has dealt with.
local looks, bytes = 0, 0
local function read(number)
  local text = call('HGET', burials, number)
  looks, bytes = looks + 1, bytes + (text and #text or 0)
  return text
end
local function matches(text)
  local _, why = burial_of(text)
  return reason == '' or find(why, reason, 1, true)
end
local function is_newest(number, key)
  for _, other in ipairs(burials_of(key, reason == '' and 1 or 1000)) do
    if other == number then return true end
    if reason == '' or matches(read(other)) then return false end
  end
  return false
end
local revived, done = 0, 0
for i = rest, #ARGV, 2 do
  local number = mark(ARGV[i])
  local text = read(number)
  if text and matches(text) then
    local key, _, _, tail_at = burial_of(text)
    if is_newest(number, key) then
      revived = revived + revive(number, key, text, tail_at, due, ARGV[i + 1])
    end
  end
  done = done + 1
  if looks >= 1000 or bytes >= tonumber(most_bytes) then break end
end
return {revived, done}
