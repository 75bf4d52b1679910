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
