-- Writes what is there, so that WAIT on the same connection waits for all earlier writes.
--
-- KEYS: leader. Returns epoch, id and batch.
local leader = redis.call('HMGET', KEYS[1], 'epoch', 'id', 'batch')
if not leader[1] then return leader end

local wrote = first('epoch', leader[1])
if wrote.err then return wrote end
return leader
