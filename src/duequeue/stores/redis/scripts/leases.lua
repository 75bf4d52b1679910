-- keys: leased states
-- args: lease_end lease_id limit
-- uses: ids states places leases_after
-- Returns id, end of the lease, due time and key of the next leases.
local found, reply = leases_after(lease_end, lease_id, tonumber(limit)), {}
for i = 1, #found, 2 do
  local _, _, due, key = state_of(call('HGET', states, found[i]))
  for _, part in ipairs({found[i], found[i + 1], due, key}) do reply[#reply + 1] = part end
end
return reply
