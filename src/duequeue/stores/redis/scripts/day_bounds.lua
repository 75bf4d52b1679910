-- The keys are the streams of one day, of all kinds. Returns the first and the last id, and how
-- many rows there are; all 0 if there are none.
local first, last, count = nil, 0, 0
for _, stream in ipairs(KEYS) do
  local oldest = call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  if oldest then
    local newest = call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
    local low, high = tonumber((string.match(oldest[1], '%d+'))), tonumber((string.match(newest[1], '%d+')))
    if not first or low < first then first = low end
    if high > last then last = high end
    count = count + call('XLEN', stream)
  end
end
return {first or 0, last, count}
