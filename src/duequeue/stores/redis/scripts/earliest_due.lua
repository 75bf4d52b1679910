-- keys: waiting listeners
-- args: now channel
-- uses: ids states clock listen
-- Returns false if it has to be called again.
if not set_clock(now) then return false end
local first = call('ZRANGE', waiting, 0, 0, 'WITHSCORES')[2]
if not first or tonumber(first) > tonumber(now) then listen(channel) end
return first or ''
