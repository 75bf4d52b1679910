-- lasting
-- keys: waiting messages last_id listeners
-- args: now sender kind due most_bytes
-- uses: wake wake_for large offer_one ids states fitting history put
-- The rest are records; `due` is the earliest of their due times. Returns the outcomes of the first
-- ones that fit.
local outcomes = table.concat(put(rest, #ARGV, now))
if find(outcomes, '[cu]') then wake_for(sender, kind, due, now) end
return outcomes
