-- keys: days
return call('SMEMBERS', days)
