-- keys: commit merging
-- args: batch now doubles query digest
-- The rest: parts. From now on their rows are taken away from the stage as they are merged.
call('UNLINK', merging)
for i = rest, #ARGV do call('RPUSH', merging, ARGV[i]) end
call('HINCRBY', commit, 'ignored', doubles)
return call('HSET', commit, 'batch', batch, 'state', 'merging', 'at', now,
  'query', query, 'digest', digest,
  'own_created', 0, 'own_updated', 0, 'own_ignored', doubles)
