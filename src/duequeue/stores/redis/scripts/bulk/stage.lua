-- lasting
-- keys: staged staged_keys stage_parts stages
-- args: batch part first
-- The rest: records, which follow the `first` rows of the part. They are there already if the
-- answer to an earlier try was lost.
if call('LLEN', staged) == 4 * first then
  local names = {}
  for i = rest, #ARGV, 4 do names[#names + 1], names[#names + 2] = ARGV[i], ARGV[i + 3] end
  call('RPUSH', staged, unpack(ARGV, rest))
  call('RPUSH', staged_keys, unpack(names))
  call('HINCRBY', stage_parts, part, #names / 2)
  call('SADD', stages, batch)
end
return 1
