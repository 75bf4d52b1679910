-- keys: commit stage_parts chosen
-- args: batch
-- The rest: part, rows. Returns `new`, or `merging` or `merged` if an earlier try got that far,
-- or `missing` if not all parts are staged as they were written, or the number of a later batch.
local last = call('HGET', commit, 'batch')
if last and tonumber(last) > tonumber(batch) then return tonumber(last) end
if last == batch then return call('HGET', commit, 'state') end
for i = rest, #ARGV, 2 do
  if call('HGET', stage_parts, ARGV[i]) ~= ARGV[i + 1] then return 'missing' end
end
call('UNLINK', chosen)  -- by a try that was given up, which may have had other parts
return 'new'
