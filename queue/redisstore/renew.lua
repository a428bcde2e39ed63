-- Lets the lease of the leader end a time from now.
--
-- KEYS: leader. ARGV: epoch, id, length of the lease in milliseconds.
-- Returns epoch, id and batch if the caller does not lead, and otherwise what full.lua says.
local leader = redis.call('HMGET', KEYS[1], 'epoch', 'id', 'batch')
if leader[1] ~= ARGV[1] or leader[2] ~= ARGV[2] then return leader end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return first('until', string.format('%.0f', now + ARGV[3]))
