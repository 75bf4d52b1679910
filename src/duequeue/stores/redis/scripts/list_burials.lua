-- keys: burials buried_at buried_keys
-- args: after_at after_number until_at until_number reason limit most_bytes brief
-- uses: ids places burials
-- Returns the time and the number after which to continue, or '' and '' at the end. Then come number
-- and text of each burial, or only its key. Looks at a thousand burials, or at `most_bytes` of them.
local rank = rank_after(buried_at, after_at, tonumber(after_number), marked_id)
local last = rank_after(buried_at, until_at, tonumber(until_number), marked_id) - 1
local reply, bytes = {'', ''}, 0
local found = call('ZRANGE', buried_at, rank, math.min(rank + 999, last), 'WITHSCORES')
for i = 1, #found, 2 do
  local number = found[i]
  local size = call('HSTRLEN', burials, number)
  if i > 1 and bytes + size > tonumber(most_bytes) then return reply end
  bytes = bytes + size
  local text = call('HGET', burials, number)
  local key, why = burial_of(text)
  reply[1], reply[2] = found[i + 1], (unmark(number))
  if reason == '' or find(why, reason, 1, true) then
    reply[#reply + 1], reply[#reply + 2] = number, brief == '1' and key or text
    if #reply == 2 + 2 * limit then return reply end
  end
end
if rank + 999 >= last then reply[1], reply[2] = '', '' end
return reply
