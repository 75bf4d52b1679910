-- keys: records
-- args: app
local found = call('HGET', records, app)
call('HDEL', records, app)
return found
