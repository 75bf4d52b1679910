-- keys: waiting
-- args: now begins_at length till
-- uses: ids states clock
-- Returns false if it has to be called again, or else how many messages are due, and then each bucket
-- with its number of messages. Empty buckets cost nothing, because the next message names the next bucket.
if tonumber(length) <= 0 then return redis.error_reply('ERR buckets must have a positive length') end
if not set_clock(now) then return false end
local reply, from = {call('ZCOUNT', waiting, '-inf', now)}, '(' .. now
while true do
  local due = call('ZRANGEBYSCORE', waiting, from, '(' .. till, 'WITHSCORES', 'LIMIT', 0, 1)[2]
  if not due then return reply end
  local bucket = math.floor((due - begins_at) / length)
  local ends = math.min(begins_at + (bucket + 1) * length, tonumber(till))
  local before = format('(%d', ends)
  reply[#reply + 1] = bucket
  reply[#reply + 1] = call('ZCOUNT', waiting, from, before)
  from = format('%d', ends)
end
