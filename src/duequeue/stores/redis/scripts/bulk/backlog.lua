-- keys: waiting leased ended states
-- args: now due_until
-- uses: ids states clock
-- Returns false if it has to be called again.
if not set_clock(now) then return false end
local first = call('ZRANGEBYSCORE', waiting, '-inf', due_until, 'WITHSCORES', 'LIMIT', 0, 1)
return {call('ZCOUNT', waiting, '-inf', due_until), first[2] or ''}
