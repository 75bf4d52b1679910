-- What several scripts have in common. A script names the parts that it uses.

-- part: ids
-- Ids as text in the order of the numbers: a letter for the number of digits, then the digits.
local function mark(id) return string.char(96 + #id) .. id end
local function unmark(member)
  local length = string.byte(member) - 96
  return sub(member, 2, length + 1), sub(member, length + 2)
end

-- part: states
-- keys: states leased ended
local function state_of(text)  -- token, attempts, due, key
  local _, _, token, attempts, due, at = find(text, '^(%d+) (%d+) (%-?%d+) ()')
  return token, tonumber(attempts), due, sub(text, at)
end

-- How many leases in a row a message had lost before its next one, as port/fencing.py counts. A message
-- that is not leased keeps this number with a zero before it, where the other stores have a minus.
local function losses_before(token)
  if sub(token, 1, 1) == '0' then return tonumber(token) end
  local digit = tonumber(sub(token, -1))
  return digit >= 5 and 4 or math.min(digit + 1, 3)
end

-- Return the token of the next lease after these losses.
local function token_after(losses, token)
  if losses == 0 then return token end
  return sub(token, 1, -2) .. tonumber(sub(token, -1)) + losses
end

-- Return what a message keeps that is given back.
local function given_back(token)
  local losses = tonumber(sub(token, -1)) % 5
  return losses == 0 and '0' or '0' .. losses
end

-- Forget that a message was ever claimed, and return how often it was.
local function revoke(id)
  local state = call('HGET', states, id)
  if not state then return 0 end
  local _, attempts = state_of(state)
  call('HDEL', states, id)
  if call('ZREM', leased, id) == 0 then call('ZREM', ended, id) end
  return attempts
end

-- part: held
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

-- part: clock
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

-- part: large
-- keys: states
-- A thousand messages that are smaller than this have less than 16 MiB together. Once a larger one
-- has been stored, scripts that read messages look at sizes first.
local LARGE = 16384
local function note_large() call('HSET', states, 'large', '1') end

-- part: fitting
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

-- part: places
-- Returns how many members of a zset come before a place or are at it. A place is a score, and what
-- `order` makes of a member.
local function rank_after(zset, score, place, order)
  local low, high = call('ZCOUNT', zset, '-inf', '(' .. score), call('ZCOUNT', zset, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if order(call('ZRANGE', zset, middle, middle)[1]) <= place then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local function marked_id(member) return tonumber((unmark(member))) end

-- part: offer_one
-- keys: waiting messages last_id
-- This handles the usual offer, which is one record under a free key, before anything else is defined.
if #ARGV == rest + 3 and #ARGV[rest + 2] < LARGE and call('HEXISTS', messages, ARGV[rest]) == 0 then
  local key, due, tail = ARGV[rest], ARGV[rest + 1], ARGV[rest + 2]
  local id = format('%d', call('INCR', last_id))
  call('HSET', messages, key, id .. ' ' .. due .. ' ' .. tail)
  call('ZADD', waiting, due, string.char(96 + #id) .. id .. key)
  wake_for(sender, kind, due, now)
  return 'c'
end

-- part: put
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

-- part: put_all
-- Store all records in ARGV between two positions, a thousand at a time.
local function put_all(first, last, now)
  local outcomes = {}
  while first <= last do
    for _, outcome in ipairs(put(first, math.min(first + 3999, last), now)) do
      outcomes[#outcomes + 1] = outcome
      first = first + 4
    end
  end
  return outcomes
end

-- part: listen
-- keys: listeners
-- A process that found nothing waits for wake-ups. A full server may refuse that. The process then
-- finds messages at its regular looks.
local function listen(channel)
  if channel ~= '' then redis.pcall('SADD', listeners, channel) end
end

-- part: leases_after
-- keys: leased
-- Returns id and end of up to `most` leases that follow a given one in the order of their ends. If
-- `lease_end` is '', it begins with the first lease.
local function leases_after(lease_end, id, most)
  local rank = lease_end == '' and 0 or rank_after(leased, lease_end, id, tostring)
  return call('ZRANGE', leased, rank, rank + most - 1, 'WITHSCORES')
end

-- part: wake
-- keys: listeners
-- Wakes one of the processes that wait. A process that is gone is removed, and the next one is tried. A
-- process that is taken out of the listeners has to look now, whatever is due, and enters itself again
-- if it finds nothing.
local function wake(due, kind, takes_out)
  local look_at = takes_out and '0' or due
  while true do
    local channel = call(takes_out and 'SPOP' or 'SRANDMEMBER', listeners)
    if not channel then return end
    if call('PUBLISH', channel, look_at .. ' ' .. kind) > 0 then return end
    call('SREM', listeners, channel)
  end
end

-- part: wake_for
-- keys: listeners
-- Wakes a process for a message, unless the sender's own process waits, which has been woken already.
-- A process that is woken for a message that is not due yet does not look now, so it stays a listener.
local function wake_for(sender, kind, due, now)
  if sender == '' then return end
  local is_due = tonumber(due) <= tonumber(now)
  if call(is_due and 'SREM' or 'SISMEMBER', listeners, sender) == 0 then wake(due, kind, is_due) end
end

-- part: history
-- A message that leaves the queue leaves a row, if a history is kept. Scripts that settle do this
-- after their first removal, so that a full server can still be drained.
local noted = false
local function keep(now, outcome, key, asked, attempts, delivered, handler_ms)
  if not rows then return end
  if not noted then
    call('SADD', days, sub(rows, find(rows, '[^:]*$')))
    noted = true
  end
  call('XADD', rows, format('%d-0', call('INCR', last_row)), 'row', table.concat({
    now, outcome, asked, attempts, delivered or '-', handler_ms or '-', key}, ' '))
end

local function asked_of(content)
  local _, _, asked = find(content, '^%d+ (%-?%d+) ')
  return asked
end

-- part: responses
-- keys: responses response_ends awaiting states
-- Store what became of a message: `a` and its response, or `r` and the reason why it has none.
local function respond(now, key, expires, text)
  call('HSET', responses, key, now .. ' ' .. expires .. ' ' .. text)
  call('ZADD', response_ends, expires, key)
end

-- Before responses are stored, delete some expired ones, as many as will be stored and ten more. An
-- entry in `response_ends` may belong to a response that is gone, or to one that was stored again. From
-- now on, claims look for responses to earlier messages.
local function clear_expired(now, stored)
  call('HSET', states, 'answers', '1')
  local over = call('ZRANGEBYSCORE', response_ends, '-inf', now, 'LIMIT', 0, stored + 10)
  for _, key in ipairs(over) do
    local _, _, expires = find(call('HGET', responses, key) or '', '^%-?%d+ (%-?%d+) ')
    if expires and tonumber(expires) <= tonumber(now) then call('HDEL', responses, key) end
    call('ZREM', response_ends, key)
  end
end

-- Wake all processes that wait for responses of this queue. A process that is gone is removed.
local function wake_awaiting(sender, kind, keys)
  if sender == '' then return end
  for _, channel in ipairs(call('SMEMBERS', awaiting)) do
    for _, key in ipairs(keys) do
      if call('PUBLISH', channel, '= ' .. #kind .. ' ' .. kind .. key) == 0 then
        call('SREM', awaiting, channel)
        break
      end
    end
  end
end

-- part: forget_responses
-- keys: responses
-- Delete the responses to earlier messages with these keys. It is done before a message can be
-- settled, so that none of them comes back.
local function forget_responses(keys)
  if call('EXISTS', responses) == 1 then call('HDEL', responses, unpack(keys)) end
end

-- part: burials
-- keys: burials buried_at buried_keys
-- A burial: `asked attempts buried_at lengths of key and reason`, key, reason, `length payload
-- headers`. Its number is marked as ids are.
local function burial_of(text)  -- key, reason, when, and where the length of the payload begins
  local _, _, at, key_size, reason_size, start =
    find(text, '^%-?%d+ %d+ (%-?%d+) (%d+) (%d+) ()')
  local reason_at = start + key_size
  local tail_at = reason_at + reason_size
  return sub(text, start, reason_at - 1), sub(text, reason_at, tail_at - 1), at, tail_at
end

-- The numbers of the burials of a key, the newest first.
local function burials_of(key, most)
  local found = call('ZREVRANGEBYLEX', buried_keys, '[' .. key .. '\0\255', '[' .. key .. '\0',
    'LIMIT', 0, most)
  for i, each in ipairs(found) do found[i] = sub(each, #key + 2) end
  return found
end

local function delete_burial(number, key)
  call('HDEL', burials, number)
  call('ZREM', buried_at, number)
  call('ZREM', buried_keys, key .. '\0' .. number)
end

-- part: revive
-- keys: messages waiting states last_id ticks
-- Puts a burial back as a new message, unless its key is live. If the key is in the note of a tick, it
-- is removed from there; `tick` is the note without the key.
local function revive(number, key, text, tail_at, due, tick)
  if call('HEXISTS', messages, key) == 1 then return 0 end
  local id = format('%d', call('INCR', last_id))
  call('HSET', messages, key, id .. ' ' .. due .. ' - ' .. sub(text, tail_at))
  call('ZADD', waiting, due, mark(id) .. key)
  if #text >= LARGE then note_large() end
  delete_burial(number, key)
  if tick ~= '' and call('ZREM', ticks, tick .. key) == 1 then call('ZADD', ticks, 0, tick) end
  return 1
end

-- part: ticks
-- keys: messages states
-- The content and the id of a message that is in the queue and was never claimed.
local function undelivered(key)
  local content = key ~= '' and call('HGET', messages, key)
  if not content then return false end
  local _, _, id = find(content, '^(%d+) ')
  local state, attempts, _ = call('HGET', states, id), 0, nil
  if state then _, attempts = state_of(state) end
  if attempts > 0 then return false end
  return content, id
end

-- The configuration, the instant and the key of a note of a prefix. Names that are refused today may
-- hold zeros.
local fifteen_digits = ('%d'):rep(15)
local function note_of(member, prefix)
  local _, _, config, at, key = find(member, '^(.-)%z(' .. fifteen_digits .. ')%z(.*)$', #prefix + 2)
  return config, at, key
end

local function notes_of(prefix)
  return call('ZRANGEBYLEX', ticks, '[' .. prefix .. '\0', '(' .. prefix .. '\1')
end
