-- The history is read and deleted; the scripts that settle messages write it.

-- script: settled
-- keys: rows
-- args: before key
-- Looks at a thousand rows of a day, the newest first, from an id backwards. Returns the id before
-- which to continue, or ''. Then come id and row of each, or of each with the given key.
local found = call('XREVRANGE', rows, before, '-', 'COUNT', 1000)
local reply = {#found == 1000 and found[1000][1] or ''}
for _, each in ipairs(found) do
  local _, _, of = find(each[2][2], '^%S+ %S+ %S+ %S+ %S+ %S+ (.*)$')
  if key == '' or of == key then
    reply[#reply + 1], reply[#reply + 2] = each[1], each[2][2]
  end
end
return reply

-- script: days
-- keys: days
return call('SMEMBERS', days)

-- script: day_bounds
-- The keys are the streams of one day, of all kinds. Returns the first and the last id, and how
-- many rows there are; all 0 if there are none.
local first, last, count = nil, 0, 0
for _, stream in ipairs(KEYS) do
  local oldest = call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  if oldest then
    local newest = call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
    local low, high = tonumber((string.match(oldest[1], '%d+'))), tonumber((string.match(newest[1], '%d+')))
    if not first or low < first then first = low end
    if high > last then last = high end
    count = count + call('XLEN', stream)
  end
end
return {first or 0, last, count}

-- script: day_rows
-- keys: rows
-- args: after until_id limit
-- Returns the id and the content of each row whose id is above `after`, up to `until_id`.
local reply = {}
for _, each in ipairs(call('XRANGE', rows, '(' .. after, until_id, 'COUNT', limit)) do
  reply[#reply + 1], reply[#reply + 2] = each[1], each[2][2]
end
return reply

-- script: count_rows
-- keys: rows
-- args: first last
-- Count rows between two ids, a thousand at most. Returns how many there are, and the ids of the
-- first and the last of them.
local found = call('XRANGE', rows, first, last, 'COUNT', 1000)
if #found == 0 then return {0, '', ''} end
return {#found, found[1][1], found[#found][1]}

-- script: scheduled
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

-- script: remove_day
-- args: last count
-- The keys are the streams of one day, each followed by the days of its kind. Removes all of them,
-- unless there are rows that the caller does not know of.
local rows = 0
for i = 1, #KEYS, 2 do
  local newest = call('XREVRANGE', KEYS[i], '+', '-', 'COUNT', 1)[1]
  if newest and tonumber((string.match(newest[1], '%d+'))) > tonumber(last) then return 0 end
  rows = rows + call('XLEN', KEYS[i])
end
if rows > tonumber(count) then return 0 end
for i = 1, #KEYS, 2 do
  call('UNLINK', KEYS[i])
  call('SREM', KEYS[i + 1], (string.match(KEYS[i], '[^:]*$')))
end
return 1

-- script: remove_rows
-- keys: rows days
-- args: first last
-- Remove rows between two ids, a thousand at most. Returns how many it removed.
local ids = {}
for i, each in ipairs(call('XRANGE', rows, first, last, 'COUNT', 1000)) do ids[i] = each[1] end
if #ids > 0 then call('XDEL', rows, unpack(ids)) end
if call('XLEN', rows) == 0 then
  call('UNLINK', rows)
  call('SREM', days, (string.match(rows, '[^:]*$')))
end
return #ids

-- script: forget_rows
-- keys: rows days
-- args: day before limit
-- Delete rows of a day that were settled before an instant; without an instant, the whole day.
-- Returns whether there may be more.
if before == '' then
  call('UNLINK', rows)
  call('SREM', days, day)
  return 0
end
local found, old = call('XRANGE', rows, '-', '+', 'COUNT', limit), {}
for _, each in ipairs(found) do
  local _, _, at = find(each[2][2], '^(%-?%d+) ')
  if tonumber(at) < tonumber(before) then old[#old + 1] = each[1] end
end
if #old > 0 then call('XDEL', rows, unpack(old)) end
return #old == tonumber(limit) and 1 or 0
