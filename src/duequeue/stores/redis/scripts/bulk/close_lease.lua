-- keys: batches unread
-- args: sequence
-- The batch is complete, and none of its slices is read. Returns what is known of it.
local text = string.gsub(call('HGET', batches, sequence), '^open', 'leased')
local _, _, slice_size, rows = find(text, '^leased (%d+) (%d+)')
for slice = 0, math.ceil(rows / slice_size) - 1 do call('SADD', unread, slice) end
call('HSET', batches, sequence, text)
return text
