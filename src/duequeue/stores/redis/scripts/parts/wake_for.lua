-- keys: listeners
-- Wake a process for a message. The sender's own process has been woken if it waits. For a message
-- that is not due yet nobody looks now, so nobody is taken out.
local function wake_for(sender, kind, due, now)
  if sender == '' then return end
  local is_due = tonumber(due) <= tonumber(now)
  if call(is_due and 'SREM' or 'SISMEMBER', listeners, sender) == 0 then wake(due, kind, is_due) end
end
