-- keys: waiting leased ended states
-- Checks which of the leases in ARGV are still held. There is an id and a token every `step` words.
-- Calls `take` once for each that is held, with the id, the attempts, the due time, the key and the
-- position. If `fits` is given, it stops before the first message that does not fit. Returns 1 for each
-- lease that is held, and 0 for each other one, also if `take` returns false.
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
      is_held = take(id, attempts, due, key, at) ~= false
    end
    won[i] = is_held and '1' or '0'
  end
  return table.concat(won)
end

-- Ends leases; a message whose lease had ended by itself also leaves the free messages.
local function unlease(ids, members)
  if call('ZREM', leased, unpack(ids)) < #ids then
    call('ZREM', ended, unpack(ids))
    call('ZREM', waiting, unpack(members))
  end
end
