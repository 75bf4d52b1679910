-- keys: waiting leased ended states
-- uses: ids states held
-- The rest: id, token. Returns 1 or 0 for each.
local ids, members, places, kept, fresh = {}, {}, {}, {}, {}
local won = held(2, function(id, attempts, due, key, at)
  local n = #ids + 1
  ids[n], members[n] = id, mark(id) .. key
  places[2 * n - 1], places[2 * n] = due, members[n]
  if attempts > 1 then
    kept[#kept + 1] = id
    kept[#kept + 1] = given_back(ARGV[at + 1]) .. ' ' .. attempts - 1 .. ' ' .. due .. ' ' .. key
  else
    fresh[#fresh + 1] = id
  end
end)
if #ids > 0 then
  unlease(ids, members)
  if #fresh > 0 then call('HDEL', states, unpack(fresh)) end
  if #kept > 0 then call('HSET', states, unpack(kept)) end
  call('ZADD', waiting, unpack(places))
end
return won
