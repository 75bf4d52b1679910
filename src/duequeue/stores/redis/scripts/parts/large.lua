-- keys: states
-- A thousand messages that are smaller than this have less than 16 MiB together. Once a larger one
-- has been stored, scripts that read messages look at sizes first.
local LARGE = 16384
local function note_large() call('HSET', states, 'large', '1') end
