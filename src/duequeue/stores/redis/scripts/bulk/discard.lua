-- keys: staged staged_keys stage_parts merging
-- args: part
-- A merge that was interrupted still needs its rows.
if call('EXISTS', merging) == 1 then return 0 end
call('UNLINK', staged, staged_keys)
return call('HDEL', stage_parts, part)
