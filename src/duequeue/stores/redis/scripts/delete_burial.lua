-- lasting
-- keys: burials buried_at buried_keys
-- args: when number
-- uses: ids burials
local text = call('HGET', burials, mark(number))
if not text then return 0 end
local key, _, at = burial_of(text)
if at ~= when then return 0 end
delete_burial(mark(number), key)
return 1
