-- keys: listeners
-- Wakes one of the processes that wait. A process that is gone is removed, and the next one is tried. A
-- process that is taken out of the listeners has to look now, whatever is due, and enters itself again
-- if it finds nothing.
local function wake(due, kind, takes_out)
  local look_at = takes_out and '0' or due
  while true do
    local channel = call(takes_out and 'SPOP' or 'SRANDMEMBER', listeners)
    if not channel then return end
    if call('PUBLISH', channel, look_at .. ' ' .. kind) > 0 then return end
    call('SREM', listeners, channel)
  end
end
