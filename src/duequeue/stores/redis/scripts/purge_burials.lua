-- lasting
-- keys: burials buried_at buried_keys
-- args: before limit most_bytes
-- uses: burials
-- Returns how many it deleted, and whether there may be more.
local found = call('ZRANGEBYSCORE', buried_at, '-inf', '(' .. before, 'LIMIT', 0, limit)
local bytes = 0
for i, number in ipairs(found) do
  bytes = bytes + call('HSTRLEN', burials, number)
  if i > 1 and bytes > tonumber(most_bytes) then return {i - 1, 1} end
  delete_burial(number, (burial_of(call('HGET', burials, number))))
end
return {#found, #found == tonumber(limit) and 1 or 0}
