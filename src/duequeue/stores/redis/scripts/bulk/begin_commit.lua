-- keys: commit
-- args: batch now
-- From now on the rows of the stage are taken away as they are merged.
return call('HSET', commit, 'batch', batch, 'state', 'merging', 'at', now,
  'own_created', 0, 'own_updated', 0, 'own_ignored', 0)
