-- keys: last_id
return call('GET', last_id) or '0'
