-- keys: batch_ids
-- A thousand messages of a micro-batch, as ids and tokens, in the place of the arguments.
local ARGV, rest = {}, 1
for i, id in ipairs(call('LRANGE', batch_ids, first, first + 999)) do
  ARGV[2 * i - 1], ARGV[2 * i] = id, token
end
