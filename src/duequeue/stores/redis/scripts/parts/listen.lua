-- keys: listeners
-- A process that found nothing waits for wake-ups. A full server may refuse that. The process then
-- finds messages at its regular looks.
local function listen(channel)
  if channel ~= '' then redis.pcall('SADD', listeners, channel) end
end
