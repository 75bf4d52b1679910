-- Messages are buried, and burials are listed, revived and deleted.

-- script: bury
-- lasting
-- keys: waiting leased ended messages states burials buried_at buried_keys last_burial
-- args: now kind_number sender kind most_bytes
-- uses: ids states held fitting history responses
-- The rest: id, token, attempts, reason, when it was delivered, time of the handler, and when the
-- reason no longer stands in place of a response. Handles the first messages that fit, and returns 1
-- for each that was held, and 0 for each other one. Numbers of burials are unique among all kinds.
local ids, keys, members, about, texts, times, names = {}, {}, {}, {}, {}, {}, {}
local refusals = {}
local number = tonumber(call('GET', last_burial) or '0')
local won = held(7, function(id, _, _, key, at)
  local n, attempts, reason = #ids + 1, ARGV[at + 2], ARGV[at + 3]
  local content = call('HGET', messages, key)
  local _, _, asked, start = find(content, '^%d+ (%-?%d+) %S+ ()')
  ids[n], keys[n], members[n] = id, key, mark(id) .. key
  about[n] = {asked, attempts, ARGV[at + 4], ARGV[at + 5]}
  refusals[n] = {ARGV[at + 6], 'r' .. reason}
  number = number + 1
  local burial = mark(format('%d', number * 1048576 + kind_number))
  texts[2 * n - 1], texts[2 * n] = burial, table.concat({asked, attempts, now, #key, #reason,
    key .. reason .. sub(content, start)}, ' ')
  times[2 * n - 1], times[2 * n] = now, burial
  names[2 * n - 1], names[2 * n] = 0, key .. '\0' .. burial
end, fits)
if #ids > 0 then
  unlease(ids, members)  -- first, because it frees memory
  for i, key in ipairs(keys) do keep(now, 'buried', key, unpack(about[i])) end
  call('SET', last_burial, format('%d', number))
  call('HSET', burials, unpack(texts))
  call('ZADD', buried_at, unpack(times))
  call('ZADD', buried_keys, unpack(names))
  call('HDEL', states, unpack(ids))
  call('HDEL', messages, unpack(keys))
  clear_expired(now, #ids)
  for i, key in ipairs(keys) do respond(now, key, unpack(refusals[i])) end
  wake_awaiting(sender, kind, keys)
end
return won

-- script: list_burials
-- keys: burials buried_at buried_keys
-- args: after_at after_number until_at until_number reason limit most_bytes brief
-- uses: ids places burials
-- Returns the time and the number after which to continue, or '' and '' at the end. Then come number
-- and text of each burial, or only its key. Looks at a thousand burials, or at `most_bytes` of them.
local rank = rank_after(buried_at, after_at, tonumber(after_number), marked_id)
local last = rank_after(buried_at, until_at, tonumber(until_number), marked_id) - 1
local reply, bytes = {'', ''}, 0
local found = call('ZRANGE', buried_at, rank, math.min(rank + 999, last), 'WITHSCORES')
for i = 1, #found, 2 do
  local number = found[i]
  local size = call('HSTRLEN', burials, number)
  if i > 1 and bytes + size > tonumber(most_bytes) then return reply end
  bytes = bytes + size
  local text = call('HGET', burials, number)
  local key, why = burial_of(text)
  reply[1], reply[2] = found[i + 1], (unmark(number))
  if reason == '' or find(why, reason, 1, true) then
    reply[#reply + 1], reply[#reply + 2] = number, brief == '1' and key or text
    if #reply == 2 + 2 * limit then return reply end
  end
end
if rank + 999 >= last then reply[1], reply[2] = '', '' end
return reply

-- script: last_burial
-- keys: buried_at
-- uses: ids
local found = call('ZREVRANGE', buried_at, 0, 0, 'WITHSCORES')
return found[1] and {found[2], (unmark(found[1]))}

-- script: burial_reasons
-- keys: burials buried_at buried_keys
-- args: since from most_bytes
-- uses: burials
-- Look at a thousand burials since an instant, or as many as fit. Returns whether there may be more,
-- then reason and time of each.
local found = call('ZRANGEBYSCORE', buried_at, since, '+inf', 'LIMIT', from, 1000)
local reply, bytes = {#found == 1000 and 1 or 0}, 0
for i, number in ipairs(found) do
  bytes = bytes + call('HSTRLEN', burials, number)
  if i > 1 and bytes > tonumber(most_bytes) then
    reply[1] = 1
    break
  end
  local _, reason, at = burial_of(call('HGET', burials, number))
  reply[#reply + 1], reply[#reply + 2] = reason, at
end
return reply

-- script: revive
-- lasting
-- keys: burials buried_at buried_keys
-- args: key due tick when number
-- uses: ids burials large revive
-- Without a number, it revives the newest burial of the key.
local found = number ~= '' and mark(number) or burials_of(key, 1)[1]
local text = found and call('HGET', burials, found)
if not text then return 0 end
local of, _, at, tail_at = burial_of(text)
if of ~= key or (number ~= '' and at ~= when) then return 0 end
return revive(found, key, text, tail_at, due, tick)

-- script: revive_all
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

-- script: delete_burial
-- lasting
-- keys: burials buried_at buried_keys
-- args: when number
-- uses: ids burials
local text = call('HGET', burials, mark(number))
if not text then return 0 end
local key, _, at = burial_of(text)
if at ~= when then return 0 end
delete_burial(mark(number), key)
return 1

-- script: purge_burials
-- lasting
-- keys: burials buried_at buried_keys
-- args: before limit most_bytes
-- uses: burials
-- Returns how many it deleted, and whether there may be more.
local found = call('ZRANGEBYSCORE', buried_at, '-inf', '(' .. before, 'LIMIT', 0, limit)
local bytes = 0
for i, number in ipairs(found) do
  bytes = bytes + call('HSTRLEN', burials, number)
  if i > 1 and bytes > tonumber(most_bytes) then return {i - 1, 1} end
  delete_burial(number, (burial_of(call('HGET', burials, number))))
end
return {#found, #found == tonumber(limit) and 1 or 0}
