-- keys: waiting leased ended messages states
-- args: key
-- uses: ids states burials
-- Returns content, due time, end of the lease or '', attempts; or number and burial; or false.
local content = call('HGET', messages, key)
if not content then
  local number = burials_of(key, 1)[1]
  return number and {number, call('HGET', burials, number)}
end
local _, _, id = find(content, '^(%d+) ')
local state, attempts, due, _ = call('HGET', states, id), 0, nil, nil
if state then
  _, attempts, due = state_of(state)
else
  due = call('ZSCORE', waiting, mark(id) .. key)
end
return {content, due, call('ZSCORE', leased, id) or call('ZSCORE', ended, id) or '', attempts}
