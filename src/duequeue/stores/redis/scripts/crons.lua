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
