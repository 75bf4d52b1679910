-- keys: waiting leased ended states
-- args: lease_end
-- uses: ids states held
-- The rest: id, token. Returns 1 or 0 for each.
local ids, members, leases = {}, {}, {}
local won = held(2, function(id, _, _, key)
  local n = #ids + 1
  ids[n], members[n] = id, mark(id) .. key
  leases[2 * n - 1], leases[2 * n] = lease_end, id
end)
if #ids > 0 then
  unlease(ids, members)
  call('ZADD', leased, unpack(leases))
end
return won
