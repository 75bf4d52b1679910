-- keys: staged staged_keys stage_parts
-- args: part
call('UNLINK', staged, staged_keys)
return call('HDEL', stage_parts, part)
