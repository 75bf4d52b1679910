-- keys: stage_parts merging
-- The batch is merged, or will never be. Returns the parts that are left to discard.
call('UNLINK', merging)
return call('HKEYS', stage_parts)
