-- keys: messages
-- Returns what the server that has this queue says of itself, without what its user may not read.
local function about(section)
  local found = redis.pcall('INFO', section)
  return type(found) == 'string' and found or ''
end
return about('server') .. about('clients') .. about('memory') .. about('persistence')
  .. about('replication')
