-- keys: waiting leased ended messages states listeners responses
-- args: limit now lease_end token most_bytes channel kind others
-- uses: ids states clock fitting wake listen
-- Returns false if it has to be called again, or else member, content and due time of each message, and
-- five times its attempt plus its losses. If there are any and a channel is given, the last word is
-- whether the channel was taken out of the listeners. `others` is 1 if other messages are due in
-- another shard.
if not set_clock(now) then return false end
local found = call('ZRANGEBYSCORE', waiting, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
if #found == 0 then
  listen(channel)
  return {}
end
local ids, keys = {}, {}
for i = 1, #found, 2 do ids[#ids + 1], keys[#keys + 1] = unmark(found[i]) end
local count = fitting(keys)
for i = #ids, count + 1, -1 do ids[i], keys[i] = nil, nil end
ids[count + 1] = 'answers'
local known, contents = call('HMGET', states, unpack(ids)), call('HMGET', messages, unpack(keys))
ids[count + 1] = nil
local kept, leases, reply, claimed_before = {}, {}, {}, false
for i = 1, count do
  local attempt, losses, member, due = 1, 0, found[2 * i - 1], found[2 * i]
  if known[i] then
    local before, attempts = state_of(known[i])
    attempt, losses, claimed_before = attempts + 1, losses_before(before), true
  end
  kept[2 * i - 1], kept[2 * i] = ids[i], token_after(losses, token) .. ' ' .. attempt .. ' ' .. due .. ' ' .. keys[i]
  leases[2 * i - 1], leases[2 * i] = lease_end, ids[i]
  local at = 4 * i
  reply[at - 3], reply[at - 2], reply[at - 1], reply[at] = member, contents[i], due, 5 * attempt + losses
end
call('ZREMRANGEBYRANK', waiting, 0, count - 1)  -- first, because it frees memory
-- Responses to earlier messages go before these can be settled, so that none of them comes back.
if known[count + 1] then call('HDEL', responses, unpack(keys)) end
if claimed_before then call('ZREM', ended, unpack(ids)) end
call('HSET', states, unpack(kept))
call('ZADD', leased, unpack(leases))
if channel ~= '' then reply[#reply + 1] = call('SREM', listeners, channel) end
if (count == tonumber(limit) or 2 * count < #found or others == '1') and call('SCARD', listeners) > 0 then
  local first = others == '1' and now or call('ZRANGE', waiting, 0, 0, 'WITHSCORES')[2]
  if first and tonumber(first) <= tonumber(now) then wake(first, kind, true) end
end
return reply
