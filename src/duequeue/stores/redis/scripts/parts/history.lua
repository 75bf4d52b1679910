-- A message that leaves the queue leaves a row, if a history is kept. Scripts that settle do this
-- after their first removal, so that a full server can still be drained.
local noted = false
local function keep(now, outcome, key, asked, attempts, delivered, handler_ms)
  if not rows then return end
  if not noted then
    call('SADD', days, sub(rows, find(rows, '[^:]*$')))
    noted = true
  end
  call('XADD', rows, format('%d-0', call('INCR', last_row)), 'row', table.concat({
    now, outcome, asked, attempts, delivered or '-', handler_ms or '-', key}, ' '))
end

local function asked_of(content)
  local _, _, asked = find(content, '^%d+ (%-?%d+) ')
  return asked
end
