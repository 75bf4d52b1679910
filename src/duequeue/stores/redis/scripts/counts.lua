-- keys: waiting leased buried_at
-- args: now
-- uses: ids states clock
-- Returns false if it has to be called again.
if not set_clock(now) then return false end
local oldest = call('ZRANGEBYSCORE', waiting, '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)
local nearest = call('ZRANGEBYSCORE', waiting, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
return {call('ZCOUNT', waiting, '-inf', now), call('ZCARD', leased),
  call('ZCOUNT', waiting, '(' .. now, '+inf'), call('ZCARD', buried_at), oldest[2] or '', nearest[2] or ''}
