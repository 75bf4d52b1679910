-- keys: batch_ids handled unread batches stream_ends
-- args: consumer sequence
call('UNLINK', batch_ids, handled, unread)
call('HDEL', batches, sequence)
return call('ZREM', stream_ends, consumer .. '\0' .. sequence)
