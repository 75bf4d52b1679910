-- keys: waiting leased ended states
-- Of the ids and tokens in ARGV, one pair every `step`: which leases are held? For each of them,
-- `take` is called once, with the id, the attempts, the due time, the key and the position. Ends
-- before the first message that does not fit, if `fits` is given. Returns 1 or 0 for each.
local function held(step, take, fits)
  local ids, won, seen = {}, {}, {}
  for i = rest, #ARGV, step do ids[#ids + 1] = ARGV[i] end
  if #ids == 0 then return '' end
  local found = call('HMGET', states, unpack(ids))
  for i, id in ipairs(ids) do
    local at = rest + (i - 1) * step
    local token, state = ARGV[at + 1], found[i]
    local is_held = state and not seen[id] and sub(state, 1, #token + 1) == token .. ' '
    if is_held then
      local _, attempts, due, key = state_of(state)
      if fits and not fits(key) then break end
      seen[id] = true
      take(id, attempts, due, key, at)
    end
    won[i] = is_held and '1' or '0'
  end
  return table.concat(won)
end

-- End leases; a message whose lease had ended by itself also loses its place among the free.
local function unlease(ids, members)
  if call('ZREM', leased, unpack(ids)) < #ids then
    call('ZREM', ended, unpack(ids))
    call('ZREM', waiting, unpack(members))
  end
end
