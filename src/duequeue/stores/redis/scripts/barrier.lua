-- keys: barrier
-- A write that comes after all others of the slot, before a change is confirmed.
call('UNLINK', barrier)  -- first, because a full server takes it, and then what follows too
call('SET', barrier, '1')
return 1
