-- keys: stage_parts chosen stages
-- args: batch
call('UNLINK', stage_parts, chosen)
return call('SREM', stages, batch)
