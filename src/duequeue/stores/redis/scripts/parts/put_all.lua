-- Store all records in ARGV between two positions, a thousand at a time.
local function put_all(first, last, now)
  local outcomes = {}
  while first <= last do
    for _, outcome in ipairs(put(first, math.min(first + 3999, last), now)) do
      outcomes[#outcomes + 1] = outcome
      first = first + 4
    end
  end
  return outcomes
end
