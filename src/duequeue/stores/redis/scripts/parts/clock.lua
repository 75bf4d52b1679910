-- keys: waiting leased ended states
-- The members and scores of a range of a zset as two lists, at most a thousand.
local function range(zset, from, to)
  local members, scores = {}, {}
  for i, each in ipairs(call('ZRANGEBYSCORE', zset, from, to, 'WITHSCORES', 'LIMIT', 0, 1000)) do
    local list = i % 2 == 1 and members or scores
    list[#list + 1] = each
  end
  return members, scores
end

-- Messages whose lease has ended go back to their place. If the clock was set back, those whose
-- lease has not ended after all are leased again. Returns false if there may be more of them.
local function set_clock(now)
  local over, ends = range(leased, '-inf', now)
  if #over > 0 then
    local places, notes = {}, {}
    for i, state in ipairs(call('HMGET', states, unpack(over))) do
      local _, _, due, key = state_of(state)
      places[2 * i - 1], places[2 * i] = due, mark(over[i]) .. key
      notes[2 * i - 1], notes[2 * i] = ends[i], over[i]
    end
    call('ZREM', leased, unpack(over))  -- first, because a full server takes what frees memory
    call('ZADD', waiting, unpack(places))
    call('ZADD', ended, unpack(notes))
  end
  local again, untils = range(ended, '(' .. now, '+inf')
  if #again > 0 then
    local places, leases = {}, {}
    for i, state in ipairs(call('HMGET', states, unpack(again))) do
      local _, _, _, key = state_of(state)
      places[i] = mark(again[i]) .. key
      leases[2 * i - 1], leases[2 * i] = untils[i], again[i]
    end
    call('ZREM', ended, unpack(again))
    call('ZREM', waiting, unpack(places))
    call('ZADD', leased, unpack(leases))
  end
  return #over < 1000 and #again < 1000
end
