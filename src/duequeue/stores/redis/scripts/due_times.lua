-- keys: waiting leased ended states
-- args: limit now
-- uses: ids states clock
-- Returns false if it has to be called again, or else the due times of the first messages that are due.
if not set_clock(now) then return false end
local found = call('ZRANGEBYSCORE', waiting, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
local dues = {}
for i = 2, #found, 2 do dues[i / 2] = found[i] end
return dues
