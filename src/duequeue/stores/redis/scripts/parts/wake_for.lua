-- keys: listeners
-- Wakes a process for a message, unless the sender's own process waits, which has been woken already.
-- A process that is woken for a message that is not due yet does not look now, so it stays a listener.
local function wake_for(sender, kind, due, now)
  if sender == '' then return end
  local is_due = tonumber(due) <= tonumber(now)
  if call(is_due and 'SREM' or 'SISMEMBER', listeners, sender) == 0 then wake(due, kind, is_due) end
end
