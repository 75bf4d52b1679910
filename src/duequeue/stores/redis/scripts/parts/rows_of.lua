-- keys: states leased ended
-- Adds to the reply, for each message: key, content, due time or '' if it is the one that was asked for,
-- end of the lease or '', and attempts.
local function add_rows(reply, keys, contents)
  local ids = {}
  for i, content in ipairs(contents) do
    local _, _, id = find(content, '^(%d+) ')
    ids[i] = id
  end
  if #ids == 0 then return end
  for i, state in ipairs(call('HMGET', states, unpack(ids))) do
    local due, lease_end, attempts, _ = '', '', 0, nil
    if state then
      _, attempts, due = state_of(state)
      lease_end = call('ZSCORE', leased, ids[i]) or call('ZSCORE', ended, ids[i]) or ''
    end
    for _, part in ipairs({keys[i], brief(contents[i]), due, lease_end, attempts}) do
      reply[#reply + 1] = part
    end
  end
end
