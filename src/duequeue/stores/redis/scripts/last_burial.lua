-- keys: buried_at
-- uses: ids
local found = call('ZREVRANGE', buried_at, 0, 0, 'WITHSCORES')
return found[1] and {found[2], (unmark(found[1]))}
