-- keys: ticks messages states
-- uses: states ticks
-- The rest: prefix and configuration. For each, it returns the instant of the next tick, which is the
-- first undelivered one of the configuration, and the instant of the last tick that was claimed or is gone.
local reply = {}
for i = rest, #ARGV, 2 do
  local prefix, config, next_at, last_at = ARGV[i], ARGV[i + 1], '', ''
  for _, member in ipairs(notes_of(prefix)) do
    local each, at, key = note_of(member, prefix)
    if not undelivered(key) then
      if last_at == '' or tonumber(at) > tonumber(last_at) then last_at = at end
    elseif each == config and (next_at == '' or tonumber(at) < tonumber(next_at)) then
      next_at = at
    end
  end
  reply[#reply + 1], reply[#reply + 2] = next_at, last_at
end
return reply
