-- Writes what is there, so that WAIT on the same connection waits for all earlier writes.
--
-- KEYS: leader. Returns epoch, id and batch.
local leader = redis.call('HMGET', KEYS[1], 'epoch', 'id', 'batch')
if leader[1] then redis.call('HSET', KEYS[1], 'epoch', leader[1]) end
return leader
