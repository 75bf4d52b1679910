-- Ids as text in the order of the numbers: a letter for the number of digits, then the digits.
local function mark(id) return string.char(96 + #id) .. id end
local function unmark(member)
  local length = string.byte(member) - 96
  return sub(member, 2, length + 1), sub(member, length + 2)
end
