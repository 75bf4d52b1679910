-- Returns how many members of a zset come before a place or are at it. A place is a score, and what
-- `order` makes of a member.
local function rank_after(zset, score, place, order)
  local low, high = call('ZCOUNT', zset, '-inf', '(' .. score), call('ZCOUNT', zset, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if order(call('ZRANGE', zset, middle, middle)[1]) <= place then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local function marked_id(member) return tonumber((unmark(member))) end
