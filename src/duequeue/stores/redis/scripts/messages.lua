-- keys: waiting leased messages states
-- args: now after_due after_id due_until with_free with_leased prefix limit most_bytes lease_end lease_id seen_due seen_id
-- uses: ids states clock places leases_after
-- The rest: ids of leases up to the one with `lease_end` and `lease_id`, in due order. If these are not
-- all, they reach up to the place of `seen_due` and `seen_id`. Later leases are looked up. Returns false
-- if it has to be called again, or {} if more than a thousand leases are later. Otherwise it returns the
-- due time and the id after which to continue, or '' and '' at the end. Then come id, key, content, due
-- time, end of the lease or '', and attempts of each message.
if not set_clock(now) then return false end
local most, last_due, size = tonumber(limit), tonumber(due_until), #prefix
local chosen = {}
local horizon = seen_due ~= '' and {due = tonumber(seen_due), id = tonumber(seen_id)} or nil

local function comes_before(one, other)
  return one.due < other.due or (one.due == other.due and one.id < other.id)
end
local after = {due = tonumber(after_due), id = tonumber(after_id)}

local function choose(id, key, due, lease_end)
  local place = {due = tonumber(due), id = tonumber(id), key = key, lease_end = lease_end}
  if place.due <= last_due and comes_before(after, place) and sub(key, 1, size) == prefix then
    chosen[#chosen + 1] = place
  end
  return place
end

if with_leased == '1' then
  local leases = leases_after(lease_end, lease_id, 1001)
  if #leases > 2000 then return {} end
  local known = {}
  for i = 1, #leases, 2 do known[leases[i]] = true end
  for i = rest, #ARGV do
    local ends = not known[ARGV[i]] and call('ZSCORE', leased, ARGV[i])
    if ends then leases[#leases + 1], leases[#leases + 2] = ARGV[i], ends end
  end
  for i = 1, #leases, 2 do
    local _, _, due, key = state_of(call('HGET', states, leases[i]))
    choose(leases[i], key, due, leases[i + 1])
  end
end

if with_free == '1' then
  local others, rank = #chosen, rank_after(waiting, after_due, tonumber(after_id), marked_id)
  local found = call('ZRANGE', waiting, rank, rank + 4999, 'WITHSCORES')
  for i = 1, #found, 2 do
    local id, key = unmark(found[i])
    local place = choose(id, key, found[i + 1], '')
    if place.due > last_due or #chosen - others > most then break end
    -- There may be more after it, before any leased one.
    if i == 9999 and not (horizon and comes_before(horizon, place)) then horizon = place end
  end
end

table.sort(chosen, comes_before)
local bytes, reply, last = 0, {'', ''}, horizon
for i, each in ipairs(chosen) do
  if horizon and comes_before(horizon, each) then break end
  bytes = bytes + call('HSTRLEN', messages, each.key)
  if i > most or (i > 1 and bytes > tonumber(most_bytes)) then
    last = chosen[i - 1]
    break
  end
  local id = format('%d', each.id)
  local state, attempts, _ = call('HGET', states, id), 0, nil
  if state then _, attempts = state_of(state) end
  for _, part in ipairs({id, each.key, call('HGET', messages, each.key), format('%d', each.due),
    each.lease_end, attempts}) do
    reply[#reply + 1] = part
  end
end
if last then reply[1], reply[2] = format('%d', last.due), format('%d', last.id) end
return reply
