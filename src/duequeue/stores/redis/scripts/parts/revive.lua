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
