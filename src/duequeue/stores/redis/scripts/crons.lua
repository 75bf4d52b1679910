-- A cron is read, and committed if nobody has committed in between.

-- script: cron_look
-- keys: crons ticks
-- args: prefix config since
-- Returns the row or '', and the instants that have a note.
local from = prefix .. '\0' .. config .. '\0'
local reply = {call('HGET', crons, prefix) or ''}
local found = call('ZRANGEBYLEX', ticks, '[' .. from .. since, '(' .. prefix .. '\0' .. config .. '\1')
for i, member in ipairs(found) do reply[i + 1] = sub(member, #from + 1, #from + #since) end
return reply

-- script: cron_read
-- keys: crons ticks forgotten messages states
-- args: prefix config
-- uses: states ticks
-- Returns the row or '', and until when ticks of the configuration are forgotten or ''. For each note,
-- it then returns its configuration, instant and key, and whether the message is undelivered (2), live
-- (1) or gone (0).
local reply = {call('HGET', crons, prefix) or '',
  call('HGET', forgotten, prefix .. '\0' .. config) or ''}
for _, member in ipairs(notes_of(prefix)) do
  local each, at, key = note_of(member, prefix)
  local life = undelivered(key) and 2 or key ~= '' and call('HEXISTS', messages, key) or 0
  for _, part in ipairs({each, at, key, life}) do reply[#reply + 1] = part end
end
return reply

-- script: cron_commit
-- lasting
-- keys: crons ticks forgotten messages states waiting
-- args: now prefix version row forgets_for forgets_until held_count removed_count lost_count noted_count most_bytes
-- uses: ids states history ticks fitting large put put_all
-- Carry out what was decided, or return false because somebody else was faster. The rest: keys
-- that must be undelivered, keys to remove, notes to delete, notes to add, and records to offer.
-- Returns c, u or i for each record.
local _, _, found = find(call('HGET', crons, prefix) or '0 ', '^(%d+) ')
if found ~= version then return false end
local at = rest
local function take(count)
  local part = {}
  for i = 1, tonumber(count) do part[i] = ARGV[at + i - 1] end
  at = at + count
  return part
end
for _, key in ipairs(take(held_count)) do
  if not undelivered(key) then return false end
end
for _, key in ipairs(take(removed_count)) do  -- first, because it frees memory
  local content, id = undelivered(key)
  if content then
    call('HDEL', messages, key)
    call('ZREM', waiting, mark(id) .. key)
    keep(now, 'dropped', key, asked_of(content), revoke(id))
  end
end
for _, note in ipairs(take(lost_count)) do call('ZREM', ticks, note) end
for _, note in ipairs(take(noted_count)) do call('ZADD', ticks, 0, note) end
if forgets_until ~= '' then call('HSET', forgotten, prefix .. '\0' .. forgets_for, forgets_until) end
call('HSET', crons, prefix, version + 1 .. ' ' .. row)
return table.concat(put_all(at, #ARGV, now))

-- script: cron_list
-- keys: ticks messages states
-- uses: states ticks
-- The rest: prefix and configuration. For each, it returns the instant of the next tick, which is the
-- first undelivered one of the configuration, and the instant of the last tick that was claimed or is gone.
local reply = {}
for i = rest, #ARGV, 2 do
  local prefix, config, next_at, last_at = ARGV[i], ARGV[i + 1], '', ''
  for _, member in ipairs(notes_of(prefix)) do
    local each, at, key = note_of(member, prefix)
    if not undelivered(key) then
      if last_at == '' or tonumber(at) > tonumber(last_at) then last_at = at end
    elseif each == config and (next_at == '' or tonumber(at) < tonumber(next_at)) then
      next_at = at
    end
  end
  reply[#reply + 1], reply[#reply + 2] = next_at, last_at
end
return reply

-- script: cron_rows
-- keys: crons
return call('HGETALL', crons)
