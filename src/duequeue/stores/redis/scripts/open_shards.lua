-- keys: shards
-- args: wanted
-- Returns into how many shards a queue is divided, which is decided when it is first opened.
local found = call('GET', shards)
if not found then call('SET', shards, wanted) end  -- a full server refuses it
return tonumber(found or wanted)
