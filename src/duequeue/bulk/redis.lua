-- keys: batch_ids batches stream_ends waiting leased ended messages states
-- args: consumer sequence limit now lease_end token due_until last_id skip slice_size longest
-- uses: ids states clock forget_responses
-- Returns false if it has to be called again. Otherwise it returns how many messages were leased, how
-- many were passed over because they are newer than `last_id`, the length of the longest, and how
-- many were looked at.
if not set_clock(now) then return false end
local found = call('ZRANGEBYSCORE', waiting, '-inf', due_until, 'WITHSCORES', 'LIMIT', skip, 1000)
local ids, keys, members, dues, passed = {}, {}, {}, {}, 0
for i = 1, #found, 2 do
  local id, key = unmark(found[i])
  if #ids == tonumber(limit) then break end
  if tonumber(id) > tonumber(last_id) then
    passed = passed + 1
  else
    local n = #ids + 1
    ids[n], keys[n], members[n], dues[n] = id, key, found[i], found[i + 1]
  end
end
local most = tonumber(longest)
if #ids > 0 then
  local kept, leases = {}, {}
  for i, state in ipairs(call('HMGET', states, unpack(ids))) do
    local attempts, _ = 0, nil
    if state then _, attempts = state_of(state) end
    kept[2 * i - 1] = ids[i]
    kept[2 * i] = token .. ' ' .. attempts + 1 .. ' ' .. dues[i] .. ' ' .. keys[i]
    leases[2 * i - 1], leases[2 * i] = lease_end, ids[i]
    most = math.max(most, call('HSTRLEN', messages, keys[i]))
  end
  call('ZREM', waiting, unpack(members))  -- first, because it frees memory
  forget_responses(keys)
  call('ZREM', ended, unpack(ids))
  call('HSET', states, unpack(kept))
  call('ZADD', leased, unpack(leases))
  local rows = call('RPUSH', batch_ids, unpack(ids))
  call('HSET', batches, sequence, table.concat({'open', slice_size, rows, now, lease_end, most}, ' '))
  call('ZADD', stream_ends, lease_end, consumer .. '\0' .. sequence)
end
return {#ids, passed, most, #found / 2}
