-- keys: batch_ids messages states
-- args: first last token with_payload
-- uses: states brief
-- Returns id, content, due time, attempts and key of each that is still held.
local ids, reply = call('LRANGE', batch_ids, first, last), {}
if #ids == 0 then return reply end
for i, state in ipairs(call('HMGET', states, unpack(ids))) do
  if state and sub(state, 1, #token + 1) == token .. ' ' then
    local _, attempts, due, key = state_of(state)
    for _, part in ipairs({ids[i], brief(call('HGET', messages, key)), due, attempts, key}) do
      reply[#reply + 1] = part
    end
  end
end
return reply
