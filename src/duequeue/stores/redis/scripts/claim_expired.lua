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
