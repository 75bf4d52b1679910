-- keys: leased
-- Up to `most` leases after one in the order of their ends, as id and end; '' is before all.
local function leases_after(lease_end, id, most)
  local rank = lease_end == '' and 0 or rank_after(leased, lease_end, id, tostring)
  return call('ZRANGE', leased, rank, rank + most - 1, 'WITHSCORES')
end
