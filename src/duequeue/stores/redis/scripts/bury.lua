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
