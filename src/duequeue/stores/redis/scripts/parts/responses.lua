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
