-- keys: waiting messages states last_id
-- Store the records in ARGV between two positions: key, due time, `expires length payload headers`
-- and whether it may replace. Returns c, u or i for each: created, updated, ignored. Stops before
-- the first one for which too many stored bytes would have to be read.
local function put(first, last, now)
  local keys = {}
  for i = first, last, 4 do keys[#keys + 1] = ARGV[i] end
  if #keys > 1 then
    bytes_read = 0
    for i = #keys, fitting(keys) + 1, -1 do keys[i] = nil end
  end
  local stored = call('HMGET', messages, unpack(keys))
  local before = tonumber(call('GET', last_id) or '0')
  local number, fresh, large = before, {}, false
  local outcomes, contents, places, replaced = {}, {}, {}, {}
  for i, key in ipairs(keys) do
    local at = first + 4 * (i - 1)
    local due, tail, old = ARGV[at + 1], ARGV[at + 2], fresh[key] or stored[i]
    local id, outcome = nil, 'c'
    if old then
      local _, _, known, asked, start = find(old, '^(%d+) (%-?%d+) ()')
      local _, _, size, from = find(tail, '^%S+ (%d+) ()')
      local same = from + size - 1  -- up to the end of the payload: headers make no difference
      if ARGV[at + 3] == '0'
        or (asked == due and sub(old, start, start + same - 1) == sub(tail, 1, same)) then
        outcome = 'i'
      else
        id, outcome = known, 'u'
        replaced[#replaced + 1] = {id, key, asked}
      end
    else
      number = number + 1
      id = format('%d', number)
    end
    if id then
      fresh[key] = id .. ' ' .. due .. ' ' .. tail
      large = large or #tail >= LARGE
      contents[#contents + 1] = key
      contents[#contents + 1] = fresh[key]
      places[#places + 1] = due
      places[#places + 1] = mark(id) .. key
    end
    outcomes[i] = outcome
  end
  if #contents > 0 then
    call('HSET', messages, unpack(contents))  -- first: if a full server refuses it, nothing changes
    call('ZADD', waiting, unpack(places))
    if number > before then call('SET', last_id, format('%d', number)) end
    if large then note_large() end
    for _, each in ipairs(replaced) do keep(now, 'replaced', each[2], each[3], revoke(each[1])) end
  end
  return outcomes
end
