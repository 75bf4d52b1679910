-- lasting
-- keys: waiting leased ended states
-- uses: ids states held
-- The rest: id, token, due time. Returns 1 or 0 for each.
local ids, members, places, kept = {}, {}, {}, {}
local won = held(3, function(id, attempts, _, key, at)
  local n, due = #ids + 1, ARGV[at + 2]
  ids[n], members[n] = id, mark(id) .. key
  places[2 * n - 1], places[2 * n] = due, members[n]
  kept[2 * n - 1], kept[2 * n] = id, '0 ' .. attempts .. ' ' .. due .. ' ' .. key
end)
if #ids > 0 then
  unlease(ids, members)
  call('HSET', states, unpack(kept))
  call('ZADD', waiting, unpack(places))
end
return won
