-- lasting
-- keys: waiting leased ended messages states handled
-- args: now first token delivered most_bytes
-- uses: ids states batch held fitting history
-- Ack the first thousand messages of a batch, or as many as a history may read. Returns how many of
-- them were held, and how many are left.
local ids, keys, members, attempts_of = {}, {}, {}, {}
local won = held(2, function(id, attempts, _, key)
  local n = #ids + 1
  ids[n], keys[n], members[n], attempts_of[n] = id, key, mark(id) .. key, attempts
end, rows and fits)
if #ids > 0 then
  unlease(ids, members)  -- first, because it frees memory
  if rows then
    for i, content in ipairs(call('HMGET', messages, unpack(keys))) do
      keep(now, 'acked', keys[i], asked_of(content), attempts_of[i], delivered,
        call('HGET', handled, ids[i]))
    end
  end
  call('HDEL', states, unpack(ids))
  call('HDEL', messages, unpack(keys))
end
call('LTRIM', batch_ids, #won, -1)
return {#ids, call('LLEN', batch_ids)}
