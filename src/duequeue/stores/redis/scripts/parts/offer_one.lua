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
