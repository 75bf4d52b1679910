-- Whole batches, which are offered, leased and read a thousand messages at a time.

-- part: batch
-- keys: batch_ids
-- Puts the ids and tokens of a thousand messages of a micro-batch in the place of the arguments.
local ARGV, rest = {}, 1
for i, id in ipairs(call('LRANGE', batch_ids, first, first + 999)) do
  ARGV[2 * i - 1], ARGV[2 * i] = id, token
end

-- part: brief
-- A message without its payload, if that is not wanted.
local function brief(content)
  if with_payload == '1' then return content end
  local _, _, head, size, start = find(content, '^(%d+ %-?%d+ %S+) (%d+) ()')
  return head .. ' 0 ' .. sub(content, start + size)
end

-- part: rows_of
-- keys: states leased ended
-- Adds to the reply, for each message: key, content, due time or '' if it is the one that was asked for,
-- end of the lease or '', and attempts.
local function add_rows(reply, keys, contents)
  local ids = {}
  for i, content in ipairs(contents) do
    local _, _, id = find(content, '^(%d+) ')
    ids[i] = id
  end
  if #ids == 0 then return end
  for i, state in ipairs(call('HMGET', states, unpack(ids))) do
    local due, lease_end, attempts, _ = '', '', 0, nil
    if state then
      _, attempts, due = state_of(state)
      lease_end = call('ZSCORE', leased, ids[i]) or call('ZSCORE', ended, ids[i]) or ''
    end
    for _, part in ipairs({keys[i], brief(contents[i]), due, lease_end, attempts}) do
      reply[#reply + 1] = part
    end
  end
end

-- part: staged
-- keys: commit staged staged_keys stage_parts chosen
-- Puts the next chosen rows of a part of the stage in the place of the arguments.
call('HINCRBY', commit, 'created', 0)  -- first: a full server refuses it, and nothing changes
local taken, bytes, ARGV = 0, 0, {}
local index = call('HGET', stage_parts, part) - call('LLEN', staged) / 4
local is_chosen = call('EXISTS', chosen) == 1
local has_room = true
while taken < 1000 and bytes < 8388608 and has_room do
  local record = call('LPOP', staged, 4)
  if not record then break end
  local place = part .. ':' .. format('%d', index + taken)
  taken, bytes, has_room = taken + 1, bytes + #record[3], fits(record[1])
  if not is_chosen or call('HGET', chosen, record[1]) == place then
    for i = 1, 4 do ARGV[#ARGV + 1] = record[i] end
  end
end

-- script: bulk/last_id
-- keys: last_id
return call('GET', last_id) or '0'

-- script: bulk/stage
-- lasting
-- keys: staged staged_keys stage_parts stages
-- args: batch part first
-- The rest: records, which follow the `first` rows of the part. They are there already if the
-- answer to an earlier try was lost.
if call('LLEN', staged) == 4 * first then
  local names = {}
  for i = rest, #ARGV, 4 do names[#names + 1], names[#names + 2] = ARGV[i], ARGV[i + 3] end
  call('RPUSH', staged, unpack(ARGV, rest))
  call('RPUSH', staged_keys, unpack(names))
  call('HINCRBY', stage_parts, part, #names / 2)
  call('SADD', stages, batch)
end
return 1

-- script: bulk/stages
-- keys: stages
return call('SMEMBERS', stages)

-- script: bulk/discard
-- keys: staged staged_keys stage_parts merging
-- args: part
-- A merge that was interrupted still needs its rows.
if call('EXISTS', merging) == 1 then return 0 end
call('UNLINK', staged, staged_keys)
return call('HDEL', stage_parts, part)

-- script: bulk/forget_stage
-- keys: stage_parts chosen stages
-- args: batch
call('UNLINK', stage_parts, chosen)
return call('SREM', stages, batch)

-- script: bulk/choose
-- keys: staged_keys chosen
-- args: part first
-- If several parts have the same key, one record is chosen: the last one that may replace, or else
-- the first one. The parts are passed in order. Returns how many rows were looked at, which is at most 1000.
local names = call('LRANGE', staged_keys, 2 * first, 2 * first + 1999)
for i = 1, #names, 2 do
  local place = part .. ':' .. format('%d', first + (i - 1) / 2)
  call(names[i + 1] == '1' and 'HSET' or 'HSETNX', chosen, names[i], place)
end
return #names / 2

-- script: bulk/open_commit
-- keys: commit stage_parts chosen
-- args: batch query digest
-- The rest: part, rows. Returns `new`, or `merging` or `merged` if an earlier try got that far, or
-- `other` if that was a try of another query with other rows, or `missing` if not all parts are
-- staged as they were written, or the number of a later batch.
local last = call('HGET', commit, 'batch')
if last and tonumber(last) > tonumber(batch) then return tonumber(last) end
if last == batch then
  local by = call('HMGET', commit, 'state', 'query', 'digest')
  local known = digest ~= '' and by[3] and by[3] ~= ''
  if known and by[2] ~= query and by[3] ~= digest then return 'other' end
  return by[1]
end
for i = rest, #ARGV, 2 do
  if call('HGET', stage_parts, ARGV[i]) ~= ARGV[i + 1] then return 'missing' end
end
call('UNLINK', chosen)  -- by a try that was given up, which may have had other parts
return 'new'

-- script: bulk/begin_commit
-- keys: commit merging
-- args: batch now doubles query digest
-- The rest: parts. From now on their rows are taken away from the stage as they are merged.
call('UNLINK', merging)
for i = rest, #ARGV do call('RPUSH', merging, ARGV[i]) end
call('HINCRBY', commit, 'ignored', doubles)
return call('HSET', commit, 'batch', batch, 'state', 'merging', 'at', now,
  'query', query, 'digest', digest,
  'own_created', 0, 'own_updated', 0, 'own_ignored', doubles)

-- script: bulk/merging
-- keys: merging
-- Returns the parts whose rows are being merged, in their order.
return call('LRANGE', merging, 0, -1)

-- script: bulk/merge
-- lasting
-- keys: commit waiting messages
-- args: part now most_bytes
-- uses: fitting staged ids states history large put put_all
-- Returns 0 if nothing is left of the part.
local counts = {created = 0, updated = 0, ignored = taken - #ARGV / 4}
local names = {c = 'created', u = 'updated', i = 'ignored'}
for _, outcome in ipairs(put_all(1, #ARGV, now)) do
  counts[names[outcome]] = counts[names[outcome]] + 1
end
for name, count in pairs(counts) do
  call('HINCRBY', commit, name, count)
  call('HINCRBY', commit, 'own_' .. name, count)
end
return call('LLEN', staged)

-- script: bulk/end_merge
-- keys: stage_parts merging
-- The batch is merged, or will never be. Returns the parts that are left to discard.
call('UNLINK', merging)
return call('HKEYS', stage_parts)

-- script: bulk/close_commit
-- lasting
-- keys: commit
-- Returns how many rows of this batch were created, updated and ignored.
call('HSET', commit, 'state', 'merged')
return call('HMGET', commit, 'own_created', 'own_updated', 'own_ignored')

-- script: bulk/find_commit
-- keys: commit
return call('HMGET', commit, 'batch', 'created', 'updated', 'ignored')

-- script: bulk/record
-- lasting
-- keys: records
-- args: app counts now before
-- Counts that are older than the instant `before`, and that nobody has asked for, are deleted.
local all = call('HGETALL', records)
for i = 1, #all, 2 do
  local _, _, at = find(all[i + 1], '^(%d+) ')
  if tonumber(at) < tonumber(before) then call('HDEL', records, all[i]) end
end
return call('HSET', records, app, now .. ' ' .. counts)

-- script: bulk/take_record
-- keys: records
-- args: app
local found = call('HGET', records, app)
call('HDEL', records, app)
return found

-- script: bulk/backlog
-- keys: waiting leased ended states
-- args: now due_until
-- uses: ids states clock
-- Returns false if it has to be called again.
if not set_clock(now) then return false end
local first = call('ZRANGEBYSCORE', waiting, '-inf', due_until, 'WITHSCORES', 'LIMIT', 0, 1)
return {call('ZCOUNT', waiting, '-inf', due_until), first[2] or ''}

-- script: bulk/lease
-- keys: batch_ids batches stream_ends waiting leased ended messages states
-- args: consumer sequence limit now lease_end token due_until last_id skip slice_size longest
-- uses: ids states clock forget_responses
-- Returns false if it has to be called again. Otherwise it returns how many messages were leased, how
-- many were passed over because they are newer than `last_id`, the length of the longest, and how
-- many were looked at.
if not set_clock(now) then return false end
local found = call('ZRANGEBYSCORE', waiting, '-inf', due_until, 'WITHSCORES', 'LIMIT', skip, 1000)
local ids, keys, members, dues, passed = {}, {}, {}, {}, 0
for i = 1, #found, 2 do
  local id, key = unmark(found[i])
  if #ids == tonumber(limit) then break end
  if tonumber(id) > tonumber(last_id) then
    passed = passed + 1
  else
    local n = #ids + 1
    ids[n], keys[n], members[n], dues[n] = id, key, found[i], found[i + 1]
  end
end
local most = tonumber(longest)
if #ids > 0 then
  local kept, leases = {}, {}
  for i, state in ipairs(call('HMGET', states, unpack(ids))) do
    local attempts, _ = 0, nil
    if state then _, attempts = state_of(state) end
    kept[2 * i - 1] = ids[i]
    kept[2 * i] = token .. ' ' .. attempts + 1 .. ' ' .. dues[i] .. ' ' .. keys[i]
    leases[2 * i - 1], leases[2 * i] = lease_end, ids[i]
    most = math.max(most, call('HSTRLEN', messages, keys[i]))
  end
  call('ZREM', waiting, unpack(members))  -- first, because it frees memory
  forget_responses(keys)
  call('ZREM', ended, unpack(ids))
  call('HSET', states, unpack(kept))
  call('ZADD', leased, unpack(leases))
  local rows = call('RPUSH', batch_ids, unpack(ids))
  call('HSET', batches, sequence, table.concat({'open', slice_size, rows, now, lease_end, most}, ' '))
  call('ZADD', stream_ends, lease_end, consumer .. '\0' .. sequence)
end
return {#ids, passed, most, #found / 2}

-- script: bulk/close_lease
-- keys: batches unread
-- args: sequence
-- The batch is complete, and none of its slices is read. Returns what is known of it.
local text = string.gsub(call('HGET', batches, sequence), '^open', 'leased')
local _, _, slice_size, rows = find(text, '^leased (%d+) (%d+)')
for slice = 0, math.ceil(rows / slice_size) - 1 do call('SADD', unread, slice) end
call('HSET', batches, sequence, text)
return text

-- script: bulk/note_lease
-- keys: batches stream_ends
-- args: consumer sequence lease_end
local text = call('HGET', batches, sequence)
if text then
  call('HSET', batches, sequence, (string.gsub(text, '%-?%d+ (%d+)$', lease_end .. ' %1')))
  call('ZADD', stream_ends, lease_end, consumer .. '\0' .. sequence)
end
return 1

-- script: bulk/batches
-- keys: batches
return call('HGETALL', batches)

-- script: bulk/lengths
-- keys: batch_ids messages states
-- args: first last
-- uses: states
-- Returns the approximate length of each message, and 0 for one that is gone.
local ids, lengths = call('LRANGE', batch_ids, first, last), {}
if #ids == 0 then return lengths end
for i, state in ipairs(call('HMGET', states, unpack(ids))) do
  local _, key
  if state then _, _, _, key = state_of(state) end
  lengths[i] = key and call('HSTRLEN', messages, key) or 0
end
return lengths

-- script: bulk/read_slice
-- keys: batch_ids messages states
-- args: first last token with_payload
-- uses: states brief
-- Returns id, content, due time, attempts and key of each that is still held.
local ids, reply = call('LRANGE', batch_ids, first, last), {}
if #ids == 0 then return reply end
for i, state in ipairs(call('HMGET', states, unpack(ids))) do
  if state and sub(state, 1, #token + 1) == token .. ' ' then
    local _, attempts, due, key = state_of(state)
    for _, part in ipairs({ids[i], brief(call('HGET', messages, key)), due, attempts, key}) do
      reply[#reply + 1] = part
    end
  end
end
return reply

-- script: bulk/note_read
-- lasting
-- keys: unread
-- args: slice
return call('SREM', unread, slice)

-- script: bulk/unread
-- keys: unread
return call('SMEMBERS', unread)

-- script: bulk/note_handled
-- keys: batch_ids handled
-- The rest: id, milliseconds.
if call('EXISTS', batch_ids) == 1 then call('HSET', handled, unpack(ARGV, rest)) end
return 1

-- script: bulk/extend
-- keys: waiting leased ended states
-- args: first token lease_end
-- uses: ids states batch held
-- Returns how many are still held.
local ids, members, leases = {}, {}, {}
held(2, function(id, _, _, key)
  local n = #ids + 1
  ids[n], members[n] = id, mark(id) .. key
  leases[2 * n - 1], leases[2 * n] = lease_end, id
end)
if #ids > 0 then
  unlease(ids, members)
  call('ZADD', leased, unpack(leases))
end
return #ids

-- script: bulk/ack
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

-- script: bulk/forget_batch
-- keys: batch_ids handled unread batches stream_ends
-- args: consumer sequence
call('UNLINK', batch_ids, handled, unread)
call('HDEL', batches, sequence)
return call('ZREM', stream_ends, consumer .. '\0' .. sequence)

-- script: bulk/stale
-- keys: stream_ends
-- args: before
return call('ZRANGEBYSCORE', stream_ends, '-inf', '(' .. before, 'LIMIT', 0, 1000)

-- script: bulk/kind_of
-- keys: kinds
-- args: number
-- The empty name is not a kind, because it stores the layout.
local all = call('HGETALL', kinds)
for i = 1, #all, 2 do if all[i] ~= '' and all[i + 1] == number then return all[i] end end
return false

-- script: bulk/page
-- keys: messages
-- args: cursor parts part with_payload
-- uses: states brief rows_of
-- Reads some of the messages whose ids belong to this part. Returns where to continue, which is 0 at
-- the end, and the rows.
local count = call('HEXISTS', states, 'large') == 1 and 1 or 1000
local scanned = call('HSCAN', messages, cursor, 'COUNT', count)
local keys, contents, reply = {}, {}, {scanned[1]}
for i = 1, #scanned[2], 2 do
  local key, content = scanned[2][i], scanned[2][i + 1]
  local _, _, id = find(content, '^(%d+) ')
  if tonumber(id) % tonumber(parts) == tonumber(part) then
    keys[#keys + 1], contents[#contents + 1] = key, content
  end
end
add_rows(reply, keys, contents)
return reply

-- script: bulk/select
-- keys: messages
-- args: with_payload most_bytes
-- uses: states brief rows_of fitting
-- The rest: keys. Returns how many of them it has looked up, and the rows of those that are there.
local keys, contents, reply = {}, {}, {0}
for i = rest, #ARGV do
  if not fits(ARGV[i]) then break end
  local content = call('HGET', messages, ARGV[i])
  if content then keys[#keys + 1], contents[#contents + 1] = ARGV[i], content end
  reply[1] = i - rest + 1
end
add_rows(reply, keys, contents)
return reply
