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
