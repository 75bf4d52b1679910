-- lasting
-- keys: commit waiting messages
-- args: part now most_bytes
-- uses: fitting staged ids states history large put put_all
-- Returns 0 if nothing is left of the part.
local counts = {created = 0, updated = 0, ignored = taken - #ARGV / 4}
local names = {c = 'created', u = 'updated', i = 'ignored'}
for _, outcome in ipairs(put_all(1, #ARGV, now)) do
  counts[names[outcome]] = counts[names[outcome]] + 1
end
for name, count in pairs(counts) do
  call('HINCRBY', commit, name, count)
  call('HINCRBY', commit, 'own_' .. name, count)
end
return call('LLEN', staged)
