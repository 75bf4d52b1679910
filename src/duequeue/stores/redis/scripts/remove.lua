-- lasting
-- keys: waiting leased ended messages states
-- args: now outcome most_bytes
-- uses: ids states held fitting history
-- The rest: id, token, when it was delivered, time of the handler, and attempts if they differ from
-- the stored ones. Returns 1 for each message that was held and is now gone, and 0 for each other one.
-- With a history, or to see which have expired, the script reads the messages, and handles only the
-- first ones that fit.
local ids, keys, members, about, contents = {}, {}, {}, {}, nil
if outcome == 'expired' then contents = {} end
local won = held(5, function(id, attempts, _, key, at)
  local n = #ids + 1
  if contents then
    local content = call('HGET', messages, key)
    local _, _, expires = find(content, '^%d+ %-?%d+ (%-?%d+) ')
    if not expires or tonumber(expires) > tonumber(now) then return false end
    contents[n] = content
  end
  ids[n], keys[n], members[n] = id, key, mark(id) .. key
  local told = ARGV[at + 4]
  about[n] = {told == '' and attempts or told, ARGV[at + 2], ARGV[at + 3]}
end, (rows or contents) and fits)
if #ids > 0 then
  unlease(ids, members)  -- first, because it frees memory
  if rows then
    for i, content in ipairs(contents or call('HMGET', messages, unpack(keys))) do
      keep(now, outcome, keys[i], asked_of(content), unpack(about[i]))
    end
  end
  call('HDEL', states, unpack(ids))
  call('HDEL', messages, unpack(keys))
end
return won
