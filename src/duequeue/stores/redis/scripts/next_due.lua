-- keys: waiting
-- args: now
return call('ZRANGEBYSCORE', waiting, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or ''
