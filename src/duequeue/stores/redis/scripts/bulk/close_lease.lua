-- keys: batches
-- args: sequence
-- The batch is complete. Returns what is known of it.
local text = string.gsub(call('HGET', batches, sequence), '^open', 'leased')
call('HSET', batches, sequence, text)
return text
