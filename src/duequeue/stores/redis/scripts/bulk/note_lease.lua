-- keys: batches stream_ends
-- args: consumer sequence lease_end
local text = call('HGET', batches, sequence)
if text then
  call('HSET', batches, sequence, (string.gsub(text, '%-?%d+ (%d+)$', lease_end .. ' %1')))
  call('ZADD', stream_ends, lease_end, consumer .. '\0' .. sequence)
end
return 1
