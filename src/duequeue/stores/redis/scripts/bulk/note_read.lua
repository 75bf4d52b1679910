-- lasting
-- keys: unread
-- args: slice
return call('SREM', unread, slice)
