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
