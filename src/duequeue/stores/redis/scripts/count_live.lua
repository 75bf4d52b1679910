-- keys: messages
return call('HLEN', messages)
