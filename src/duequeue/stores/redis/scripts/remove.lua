-- keys: waiting leased ended messages states
-- args: now outcome most_bytes
-- uses: ids states held fitting history
-- The rest: id, token, when it was delivered, time of the handler, attempts if not those stored.
-- Returns 1 or 0 for each: whether it was held, and is gone. A history reads the messages; then
-- these are the first that fit.
local ids, keys, members, about = {}, {}, {}, {}
local won = held(5, function(id, attempts, _, key, at)
  local n = #ids + 1
  ids[n], keys[n], members[n] = id, key, mark(id) .. key
  local told = ARGV[at + 4]
  about[n] = {told == '' and attempts or told, ARGV[at + 2], ARGV[at + 3]}
end, rows and fits)
if #ids > 0 then
  unlease(ids, members)  -- first, because it frees memory
  if rows then
    for i, content in ipairs(call('HMGET', messages, unpack(keys))) do
      keep(now, outcome, keys[i], asked_of(content), unpack(about[i]))
    end
  end
  call('HDEL', states, unpack(ids))
  call('HDEL', messages, unpack(keys))
end
return won
