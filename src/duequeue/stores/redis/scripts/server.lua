-- keys: messages
-- What the server that has this queue says of itself; nothing of what its user may not ask.
local function about(section)
  local found = redis.pcall('INFO', section)
  return type(found) == 'string' and found or ''
end
return about('server') .. about('clients') .. about('memory') .. about('persistence')
  .. about('replication')
