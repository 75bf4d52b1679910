-- keys: merging
-- Returns the parts whose rows are being merged, in their order.
return call('LRANGE', merging, 0, -1)
