-- keys: leased
-- Returns id and end of up to `most` leases that follow a given one in the order of their ends. If
-- `lease_end` is '', it begins with the first lease.
local function leases_after(lease_end, id, most)
  local rank = lease_end == '' and 0 or rank_after(leased, lease_end, id, tostring)
  return call('ZRANGE', leased, rank, rank + most - 1, 'WITHSCORES')
end
