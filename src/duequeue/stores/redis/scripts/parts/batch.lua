-- keys: batch_ids
-- Puts the ids and tokens of a thousand messages of a micro-batch in the place of the arguments.
local ARGV, rest = {}, 1
for i, id in ipairs(call('LRANGE', batch_ids, first, first + 999)) do
  ARGV[2 * i - 1], ARGV[2 * i] = id, token
end
