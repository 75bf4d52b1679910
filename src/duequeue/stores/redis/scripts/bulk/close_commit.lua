-- lasting
-- keys: commit
-- Returns how many rows of this batch were created, updated and ignored.
call('HSET', commit, 'state', 'merged')
return call('HMGET', commit, 'own_created', 'own_updated', 'own_ignored')
