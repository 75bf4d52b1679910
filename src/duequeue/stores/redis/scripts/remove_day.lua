-- args: last count
-- The keys are the streams of one day, each followed by the days of its kind. Removes all of them,
-- unless there are rows that the caller does not know of.
local rows = 0
for i = 1, #KEYS, 2 do
  local newest = call('XREVRANGE', KEYS[i], '+', '-', 'COUNT', 1)[1]
  if newest and tonumber((string.match(newest[1], '%d+'))) > tonumber(last) then return 0 end
  rows = rows + call('XLEN', KEYS[i])
end
if rows > tonumber(count) then return 0 end
for i = 1, #KEYS, 2 do
  call('UNLINK', KEYS[i])
  call('SREM', KEYS[i + 1], (string.match(KEYS[i], '[^:]*$')))
end
return 1
