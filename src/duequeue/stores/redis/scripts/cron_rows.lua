-- keys: crons
return call('HGETALL', crons)
