-- keys: waiting leased states
-- args: token lease_end kind
-- uses: ids states wake
-- Gives back the messages that a claim has leased for a caller that no longer waits for the answer.
local found = call('ZRANGEBYSCORE', leased, lease_end, lease_end)
local undone, earliest = 0, nil
for _, id in ipairs(found) do
  local holder, attempts, due, key = state_of(call('HGET', states, id))
  if sub(holder, 1, -2) == sub(token, 1, -2) then
    call('ZREM', leased, id)
    if attempts > 1 then
      call('HSET', states, id, given_back(holder) .. ' ' .. attempts - 1 .. ' ' .. due .. ' ' .. key)
    else
      call('HDEL', states, id)
    end
    call('ZADD', waiting, due, mark(id) .. key)
    undone = undone + 1
    if not earliest or tonumber(due) < tonumber(earliest) then earliest = due end
  end
end
if earliest then wake(earliest, kind, true) end
return undone
