-- keys: unread
return call('SMEMBERS', unread)
