-- keys: batches
return call('HGETALL', batches)
