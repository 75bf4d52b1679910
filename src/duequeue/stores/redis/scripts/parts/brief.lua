-- A message without its payload, if that is not wanted.
local function brief(content)
  if with_payload == '1' then return content end
  local _, _, head, size, start = find(content, '^(%d+ %-?%d+ %S+) (%d+) ()')
  return head .. ' 0 ' .. sub(content, start + size)
end
