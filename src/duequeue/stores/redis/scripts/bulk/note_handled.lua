-- keys: batch_ids handled
-- The rest: id, milliseconds.
if call('EXISTS', batch_ids) == 1 then call('HSET', handled, unpack(ARGV, rest)) end
return 1
