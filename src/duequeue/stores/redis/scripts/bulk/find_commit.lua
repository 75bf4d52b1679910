-- keys: commit
return call('HMGET', commit, 'batch', 'created', 'updated', 'ignored')
