-- Stores rows of the lease log, if the caller leads. A row begins with the number of its put,
-- 16 hexadecimal digits; a row of a larger put stays.
--
-- KEYS: leader, leases. ARGV: epoch, id, put, then numbers of rows, each with its entries.
-- Returns epoch, id and batch if the caller does not lead, and otherwise what full.lua says.
local leader = redis.call('HMGET', KEYS[1], 'epoch', 'id', 'batch')
if leader[1] ~= ARGV[1] or leader[2] ~= ARGV[2] then return leader end

local wrote = first('epoch', ARGV[1])
if wrote.err then return wrote end

local put = ARGV[3]
for at = 4, #ARGV, 2 do
  local present = redis.call('HGET', KEYS[2], ARGV[at])
  if not present or present:sub(1, #put) <= put then
    redis.call('HSET', KEYS[2], ARGV[at], put .. ARGV[at + 1])
  end
end
return wrote
