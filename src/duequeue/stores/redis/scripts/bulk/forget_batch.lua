-- keys: batch_ids handled batches stream_ends
-- args: consumer sequence
call('UNLINK', batch_ids, handled)
call('HDEL', batches, sequence)
return call('ZREM', stream_ends, consumer .. '\0' .. sequence)
