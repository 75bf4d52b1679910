-- keys: stages
return call('SMEMBERS', stages)
