-- keys: waiting
-- args: now until_due hour
-- Returns each hour in which free messages are due, with its numbers of messages and of overdue ones.
-- Overdue messages count in the current hour.
local messages, overdue, order = {}, {}, {}
local function add(due, count)
  local instant = math.max(tonumber(due), tonumber(now))
  local begins = instant - instant % hour
  if not messages[begins] then
    messages[begins], overdue[begins] = 0, 0
    order[#order + 1] = begins
  end
  messages[begins] = messages[begins] + count
  if tonumber(due) <= tonumber(now) then overdue[begins] = overdue[begins] + count end
end
local function before(instant) return '(' .. format('%d', math.min(instant, tonumber(until_due))) end

local is_due = call('ZCOUNT', waiting, '-inf', tonumber(now) < tonumber(until_due) and now or before(tonumber(until_due)))
if is_due > 0 then add(now, is_due) end
local from = '(' .. now
while true do
  local found = call('ZRANGEBYSCORE', waiting, from, '(' .. until_due, 'WITHSCORES', 'LIMIT', 0, 1)[2]
  if not found then break end
  local ends = tonumber(found) - tonumber(found) % hour + hour
  add(found, call('ZCOUNT', waiting, from, before(ends)))
  from = format('%d', ends)
end
local reply = {}
for _, begins in ipairs(order) do
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = begins, messages[begins], overdue[begins]
end
return reply
