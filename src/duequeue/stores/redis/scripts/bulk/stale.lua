-- keys: stream_ends
-- args: before
return call('ZRANGEBYSCORE', stream_ends, '-inf', '(' .. before, 'LIMIT', 0, 1000)
