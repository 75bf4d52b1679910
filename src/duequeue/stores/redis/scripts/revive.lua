-- lasting
-- keys: burials buried_at buried_keys
-- args: key due tick when number
-- uses: ids burials large revive
-- Without a number, it revives the newest burial of the key.
local found = number ~= '' and mark(number) or burials_of(key, 1)[1]
local text = found and call('HGET', burials, found)
if not text then return 0 end
local of, _, at, tail_at = burial_of(text)
if of ~= key or (number ~= '' and at ~= when) then return 0 end
return revive(found, key, text, tail_at, due, tick)
