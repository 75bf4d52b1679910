-- What is done with messages; `scripts/__init__.py` explains the first lines of each script.

-- script: open
-- keys: kinds
-- args: kind layout
-- Returns the number of a kind and the layout of the keys. A new kind gets the next number. The layout
-- is stored under the empty name, and is written once.
local found = call('HGET', kinds, '')
if found and found ~= layout then return {0, tonumber(found)} end
local number = call('HGET', kinds, kind)
if not number then
  if not found then call('HSET', kinds, '', layout) end
  number = call('HLEN', kinds)  -- the layout counts as one
  call('HSET', kinds, kind, number)
end
return {tonumber(number), tonumber(layout)}

-- script: open_shards
-- keys: shards
-- args: wanted
-- Returns into how many shards a queue is divided, which is decided when it is first opened.
local found = call('GET', shards)
if not found then call('SET', shards, wanted) end  -- a full server refuses it
return tonumber(found or wanted)

-- script: server
-- keys: messages
-- Returns what the server that has this queue says of itself, without what its user may not read.
local function about(section)
  local found = redis.pcall('INFO', section)
  return type(found) == 'string' and found or ''
end
return about('server') .. about('clients') .. about('memory') .. about('persistence')
  .. about('replication')

-- script: kinds
-- keys: kinds
local found = {}
for _, kind in ipairs(call('HKEYS', kinds)) do
  if kind ~= '' then found[#found + 1] = kind end  -- the empty name stores the layout
end
return found

-- script: offer
-- lasting
-- keys: waiting messages last_id listeners
-- args: now sender kind due most_bytes
-- uses: wake wake_for large offer_one ids states fitting history put
-- The rest are records; `due` is the earliest of their due times. Returns the outcomes of the first
-- ones that fit.
local outcomes = table.concat(put(rest, #ARGV, now))
if find(outcomes, '[cu]') then wake_for(sender, kind, due, now) end
return outcomes

-- script: wake
-- keys: listeners
-- args: kind due takes_out
-- uses: wake
wake(due, kind, takes_out == '1')
return 1

-- script: claim
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

-- script: claim_expired
-- keys: waiting leased ended messages states
-- args: limit now lease_end token most_bytes
-- uses: ids states clock fitting forget_responses
-- Returns false if it has to be called again, or else id, key and attempts of each message.
if not set_clock(now) then return false end
local due = call('ZRANGEBYSCORE', waiting, '-inf', now, 'LIMIT', 0, limit)
local ids, keys = {}, {}
for i, member in ipairs(due) do ids[i], keys[i] = unmark(member) end
for i = #keys, fitting(keys) + 1, -1 do keys[i] = nil end
if #keys == 0 then return {} end
local contents, known = call('HMGET', messages, unpack(keys)), call('HMGET', states, unpack(ids))
local reply = {}
for i, key in ipairs(keys) do
  local _, _, expires = find(contents[i], '^%d+ %-?%d+ (%-?%d+) ')
  if expires and tonumber(expires) <= tonumber(now) then
    local attempts = 0
    if known[i] then _, attempts = state_of(known[i]) end
    forget_responses({key})
    local score = call('ZSCORE', waiting, due[i])
    call('ZREM', waiting, due[i])
    call('ZREM', ended, ids[i])
    call('HSET', states, ids[i], token .. ' ' .. attempts .. ' ' .. score .. ' ' .. key)
    call('ZADD', leased, lease_end, ids[i])
    reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = ids[i], key, attempts
  end
end
return reply

-- script: undo_claim
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

-- script: extend
-- keys: waiting leased ended states
-- args: lease_end
-- uses: ids states held
-- The rest: id, token. Returns 1 or 0 for each.
local ids, members, leases = {}, {}, {}
local won = held(2, function(id, _, _, key)
  local n = #ids + 1
  ids[n], members[n] = id, mark(id) .. key
  leases[2 * n - 1], leases[2 * n] = lease_end, id
end)
if #ids > 0 then
  unlease(ids, members)
  call('ZADD', leased, unpack(leases))
end
return won

-- script: release
-- lasting
-- keys: waiting leased ended states
-- uses: ids states held
-- The rest: id, token, due time. Returns 1 or 0 for each.
local ids, members, places, kept = {}, {}, {}, {}
local won = held(3, function(id, attempts, _, key, at)
  local n, due = #ids + 1, ARGV[at + 2]
  ids[n], members[n] = id, mark(id) .. key
  places[2 * n - 1], places[2 * n] = due, members[n]
  kept[2 * n - 1], kept[2 * n] = id, '0 ' .. attempts .. ' ' .. due .. ' ' .. key
end)
if #ids > 0 then
  unlease(ids, members)
  call('HSET', states, unpack(kept))
  call('ZADD', waiting, unpack(places))
end
return won

-- script: give_back
-- keys: waiting leased ended states
-- uses: ids states held
-- The rest: id, token. Returns 1 or 0 for each.
local ids, members, places, kept, fresh = {}, {}, {}, {}, {}
local won = held(2, function(id, attempts, due, key, at)
  local n = #ids + 1
  ids[n], members[n] = id, mark(id) .. key
  places[2 * n - 1], places[2 * n] = due, members[n]
  if attempts > 1 then
    kept[#kept + 1] = id
    kept[#kept + 1] = given_back(ARGV[at + 1]) .. ' ' .. attempts - 1 .. ' ' .. due .. ' ' .. key
  else
    fresh[#fresh + 1] = id
  end
end)
if #ids > 0 then
  unlease(ids, members)
  if #fresh > 0 then call('HDEL', states, unpack(fresh)) end
  if #kept > 0 then call('HSET', states, unpack(kept)) end
  call('ZADD', waiting, unpack(places))
end
return won

-- script: remove
-- lasting
-- keys: waiting leased ended messages states
-- args: now outcome most_bytes
-- uses: ids states held fitting history
-- The rest: id, token, when it was delivered, time of the handler, and attempts if they differ from
-- the stored ones. Returns 1 for each message that was held and is now gone, and 0 for each other one.
-- With a history, or to see which have expired, the script reads the messages, and handles only the
-- first ones that fit.
local ids, keys, members, about, contents = {}, {}, {}, {}, nil
if outcome == 'expired' then contents = {} end
local won = held(5, function(id, attempts, _, key, at)
  local n = #ids + 1
  if contents then
    local content = call('HGET', messages, key)
    local _, _, expires = find(content, '^%d+ %-?%d+ (%-?%d+) ')
    if not expires or tonumber(expires) > tonumber(now) then return false end
    contents[n] = content
  end
  ids[n], keys[n], members[n] = id, key, mark(id) .. key
  local told = ARGV[at + 4]
  about[n] = {told == '' and attempts or told, ARGV[at + 2], ARGV[at + 3]}
end, (rows or contents) and fits)
if #ids > 0 then
  unlease(ids, members)  -- first, because it frees memory
  if rows then
    for i, content in ipairs(contents or call('HMGET', messages, unpack(keys))) do
      keep(now, outcome, keys[i], asked_of(content), unpack(about[i]))
    end
  end
  call('HDEL', states, unpack(ids))
  call('HDEL', messages, unpack(keys))
end
return won

-- script: answer
-- lasting
-- keys: waiting leased ended messages states
-- args: now sender kind most_bytes
-- uses: ids states held fitting history responses
-- The rest: id, token, when it was delivered, time of the handler, response, and when that expires.
-- Returns 1 for each message that was held and is now gone, and 0 for each other one. With a history,
-- the script reads the messages, and handles only the first ones that fit.
local ids, keys, members, about = {}, {}, {}, {}
local won = held(6, function(id, attempts, _, key, at)
  local n = #ids + 1
  ids[n], keys[n], members[n] = id, key, mark(id) .. key
  about[n] = {attempts, ARGV[at + 2], ARGV[at + 3], at}
end, rows and fits)
if #ids > 0 then
  unlease(ids, members)  -- first, because it frees memory
  if rows then
    for i, content in ipairs(call('HMGET', messages, unpack(keys))) do
      keep(now, 'acked', keys[i], asked_of(content), unpack(about[i], 1, 3))
    end
  end
  call('HDEL', states, unpack(ids))
  call('HDEL', messages, unpack(keys))
  clear_expired(now, #ids)
  for i, key in ipairs(keys) do
    local at = about[i][4]
    respond(now, key, ARGV[at + 5], 'a' .. ARGV[at + 4])
  end
  wake_awaiting(sender, kind, keys)
end
return won

-- script: response
-- keys: messages responses awaiting
-- args: key now channel
-- Returns 1 if the message is in the queue, 0 if there is nothing, else the response.
local found = 1
if call('HEXISTS', messages, key) == 0 then
  found = call('HGET', responses, key) or 0
  local _, _, expires = find(found, '^%-?%d+ (%-?%d+) ')
  if expires and tonumber(expires) <= tonumber(now) then found = 0 end
end
-- A process that found nothing waits for wake-ups. A full server may refuse that. The process then
-- finds the response at its regular looks.
if channel ~= '' and (found == 0 or found == 1) then redis.pcall('SADD', awaiting, channel) end
return found

-- script: forget_response
-- keys: messages responses
-- args: key now
-- While a message with the key is in the queue, there is no response to it.
if call('HEXISTS', messages, key) == 1 then return 0 end
local _, _, expires = find(call('HGET', responses, key) or '', '^%-?%d+ (%-?%d+) ')
call('HDEL', responses, key)
return expires and tonumber(expires) > tonumber(now) and 1 or 0

-- script: reschedule
-- lasting
-- keys: waiting leased ended messages states
-- args: key due
-- uses: ids states
-- Returns whether the message was found and is now due at the given time.
local content = call('HGET', messages, key)
if not content then return 0 end
local _, _, id, expires = find(content, '^(%d+) %-?%d+ (%S+) ')
if expires ~= '-' and tonumber(expires) <= tonumber(due) then return 0 end
local member = mark(id) .. key
call('ZREM', waiting, member)  -- first, because it frees memory
local attempts = revoke(id)
if attempts > 0 then call('HSET', states, id, '0 ' .. attempts .. ' ' .. due .. ' ' .. key) end
call('HSET', messages, key, (string.gsub(content, '^(%d+) %-?%d+ ', '%1 ' .. due .. ' ', 1)))
call('ZADD', waiting, due, member)
return 1

-- script: drop
-- lasting
-- keys: waiting messages
-- args: now key sender kind expires reason
-- uses: ids states history responses
local content = call('HGET', messages, key)
if not content then return 0 end
local _, _, id = find(content, '^(%d+) ')
call('HDEL', messages, key)  -- first, because it frees memory
call('ZREM', waiting, mark(id) .. key)
keep(now, 'dropped', key, asked_of(content), revoke(id))
clear_expired(now, 1)
respond(now, key, expires, 'r' .. reason)
wake_awaiting(sender, kind, {key})
return 1

-- script: drop_all
-- lasting
-- keys: waiting leased ended messages states responses response_ends
-- args: now most_bytes
-- uses: ids states fitting history
-- Returns how many it dropped, and whether there may be more. With a history, it drops a thousand at a
-- time, or as many as fit.
call('UNLINK', responses, response_ends)
if not rows then
  local total = call('HLEN', messages)
  call('UNLINK', waiting, leased, ended, messages, states)
  return {total, 0}
end
local found = {}
for _, id in ipairs(call('ZRANGE', leased, 0, 999)) do
  local _, _, _, key = state_of(call('HGET', states, id))
  found[#found + 1] = {id, key}
end
if #found == 0 then
  for _, member in ipairs(call('ZRANGE', waiting, 0, 999)) do found[#found + 1] = {unmark(member)} end
end
local dropped = 0
for _, each in ipairs(found) do
  local id, key = each[1], each[2]
  if not fits(key) then break end
  dropped = dropped + 1
  local content = call('HGET', messages, key)
  call('HDEL', messages, key)
  call('ZREM', waiting, mark(id) .. key)
  keep(now, 'dropped', key, asked_of(content), revoke(id))
end
return {dropped, #found > 0 and 1 or 0}

-- script: read
-- keys: waiting leased ended messages states
-- args: key
-- uses: ids states burials
-- Returns content, due time, end of the lease or '', attempts; or number and burial; or false.
local content = call('HGET', messages, key)
if not content then
  local number = burials_of(key, 1)[1]
  return number and {number, call('HGET', burials, number)}
end
local _, _, id = find(content, '^(%d+) ')
local state, attempts, due, _ = call('HGET', states, id), 0, nil, nil
if state then
  _, attempts, due = state_of(state)
else
  due = call('ZSCORE', waiting, mark(id) .. key)
end
return {content, due, call('ZSCORE', leased, id) or call('ZSCORE', ended, id) or '', attempts}

-- script: list
-- keys: waiting leased messages states
-- args: now after_due after_id due_until with_free with_leased prefix limit most_bytes lease_end lease_id seen_due seen_id
-- uses: ids states clock places leases_after
-- The rest: ids of leases up to the one with `lease_end` and `lease_id`, in due order. If these are not
-- all, they reach up to the place of `seen_due` and `seen_id`. Later leases are looked up. Returns false
-- if it has to be called again, or {} if more than a thousand leases are later. Otherwise it returns the
-- due time and the id after which to continue, or '' and '' at the end. Then come id, key, content, due
-- time, end of the lease or '', and attempts of each message.
if not set_clock(now) then return false end
local most, last_due, size = tonumber(limit), tonumber(due_until), #prefix
local chosen = {}
local horizon = seen_due ~= '' and {due = tonumber(seen_due), id = tonumber(seen_id)} or nil

local function comes_before(one, other)
  return one.due < other.due or (one.due == other.due and one.id < other.id)
end
local after = {due = tonumber(after_due), id = tonumber(after_id)}

local function choose(id, key, due, lease_end)
  local place = {due = tonumber(due), id = tonumber(id), key = key, lease_end = lease_end}
  if place.due <= last_due and comes_before(after, place) and sub(key, 1, size) == prefix then
    chosen[#chosen + 1] = place
  end
  return place
end

if with_leased == '1' then
  local leases = leases_after(lease_end, lease_id, 1001)
  if #leases > 2000 then return {} end
  local known = {}
  for i = 1, #leases, 2 do known[leases[i]] = true end
  for i = rest, #ARGV do
    local ends = not known[ARGV[i]] and call('ZSCORE', leased, ARGV[i])
    if ends then leases[#leases + 1], leases[#leases + 2] = ARGV[i], ends end
  end
  for i = 1, #leases, 2 do
    local _, _, due, key = state_of(call('HGET', states, leases[i]))
    choose(leases[i], key, due, leases[i + 1])
  end
end

if with_free == '1' then
  local others, rank = #chosen, rank_after(waiting, after_due, tonumber(after_id), marked_id)
  local found = call('ZRANGE', waiting, rank, rank + 4999, 'WITHSCORES')
  for i = 1, #found, 2 do
    local id, key = unmark(found[i])
    local place = choose(id, key, found[i + 1], '')
    if place.due > last_due or #chosen - others > most then break end
    -- There may be more after it, before any leased one.
    if i == 9999 and not (horizon and comes_before(horizon, place)) then horizon = place end
  end
end

table.sort(chosen, comes_before)
local bytes, reply, last = 0, {'', ''}, horizon
for i, each in ipairs(chosen) do
  if horizon and comes_before(horizon, each) then break end
  bytes = bytes + call('HSTRLEN', messages, each.key)
  if i > most or (i > 1 and bytes > tonumber(most_bytes)) then
    last = chosen[i - 1]
    break
  end
  local id = format('%d', each.id)
  local state, attempts, _ = call('HGET', states, id), 0, nil
  if state then _, attempts = state_of(state) end
  for _, part in ipairs({id, each.key, call('HGET', messages, each.key), format('%d', each.due),
    each.lease_end, attempts}) do
    reply[#reply + 1] = part
  end
end
if last then reply[1], reply[2] = format('%d', last.due), format('%d', last.id) end
return reply

-- script: counts
-- keys: waiting leased buried_at
-- args: now
-- uses: ids states clock
-- Returns false if it has to be called again.
if not set_clock(now) then return false end
local oldest = call('ZRANGEBYSCORE', waiting, '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)
local nearest = call('ZRANGEBYSCORE', waiting, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
return {call('ZCOUNT', waiting, '-inf', now), call('ZCARD', leased),
  call('ZCOUNT', waiting, '(' .. now, '+inf'), call('ZCARD', buried_at), oldest[2] or '', nearest[2] or ''}

-- script: count_live
-- keys: messages
return call('HLEN', messages)

-- script: forecast
-- keys: waiting
-- args: now begins_at length till
-- uses: ids states clock
-- Returns false if it has to be called again, or else how many messages are due, and then each bucket
-- with its number of messages. Empty buckets cost nothing, because the next message names the next bucket.
if tonumber(length) <= 0 then return redis.error_reply('ERR buckets must have a positive length') end
if not set_clock(now) then return false end
local reply, from = {call('ZCOUNT', waiting, '-inf', now)}, '(' .. now
while true do
  local due = call('ZRANGEBYSCORE', waiting, from, '(' .. till, 'WITHSCORES', 'LIMIT', 0, 1)[2]
  if not due then return reply end
  local bucket = math.floor((due - begins_at) / length)
  local ends = math.min(begins_at + (bucket + 1) * length, tonumber(till))
  local before = format('(%d', ends)
  reply[#reply + 1] = bucket
  reply[#reply + 1] = call('ZCOUNT', waiting, from, before)
  from = format('%d', ends)
end

-- script: leases
-- keys: leased states
-- args: lease_end lease_id limit
-- uses: ids states places leases_after
-- Returns id, end of the lease, due time and key of the next leases.
local found, reply = leases_after(lease_end, lease_id, tonumber(limit)), {}
for i = 1, #found, 2 do
  local _, _, due, key = state_of(call('HGET', states, found[i]))
  for _, part in ipairs({found[i], found[i + 1], due, key}) do reply[#reply + 1] = part end
end
return reply

-- script: due_times
-- keys: waiting leased ended states
-- args: limit now
-- uses: ids states clock
-- Returns false if it has to be called again, or else the due times of the first messages that are due.
if not set_clock(now) then return false end
local found = call('ZRANGEBYSCORE', waiting, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
local dues = {}
for i = 2, #found, 2 do dues[i / 2] = found[i] end
return dues

-- script: earliest_due
-- keys: waiting listeners
-- args: now channel
-- uses: ids states clock listen
-- Returns false if it has to be called again.
if not set_clock(now) then return false end
local first = call('ZRANGE', waiting, 0, 0, 'WITHSCORES')[2]
if not first or tonumber(first) > tonumber(now) then listen(channel) end
return first or ''

-- script: next_due
-- keys: waiting
-- args: now
return call('ZRANGEBYSCORE', waiting, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or ''

-- script: barrier
-- keys: barrier
-- A write that comes after all others of the slot, before a change is confirmed.
call('UNLINK', barrier)  -- first, because a full server takes it, and then what follows too
call('SET', barrier, '1')
return 1
