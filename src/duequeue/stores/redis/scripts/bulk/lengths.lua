-- keys: batch_ids messages states
-- args: first last
-- uses: states
-- Returns the approximate length of each message, and 0 for one that is gone.
local ids, lengths = call('LRANGE', batch_ids, first, last), {}
if #ids == 0 then return lengths end
for i, state in ipairs(call('HMGET', states, unpack(ids))) do
  local _, key
  if state then _, _, _, key = state_of(state) end
  lengths[i] = key and call('HSTRLEN', messages, key) or 0
end
return lengths
