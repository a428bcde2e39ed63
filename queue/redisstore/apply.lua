-- Makes the changes of a batch, if the caller leads and has made the batch before it.
--
-- KEYS: leader, then hashes of rows.
-- ARGV: epoch, id, last batch, this batch; for each hash the number of fields to set and
-- of fields to remove; then for each hash these fields with their values, and these
-- fields.
-- Returns epoch, id and batch if the server has others, and otherwise what full.lua says.
local leader = redis.call('HMGET', KEYS[1], 'epoch', 'id', 'batch')
if leader[1] ~= ARGV[1] or leader[2] ~= ARGV[2] or leader[3] ~= ARGV[3] then return leader end

-- A script that fails keeps what it has written by then. Therefore all that can fail comes
-- before or with the first write: keys of another type here; a full disk and a read-only
-- server in the first write. Later writes are made in spite of these.
for i = 2, #KEYS do redis.call('HLEN', KEYS[i]) end
local wrote = first('batch', ARGV[4])
if wrote.err then return wrote end

local most = 2000 -- arguments of one call: unpack is limited to about 8000
local at = 5 + 2 * (#KEYS - 1)
local function each(command, key, count)
  local stop = at + count - 1
  while at <= stop do
    local last = math.min(at + most - 1, stop)
    redis.call(command, key, unpack(ARGV, at, last))
    at = last + 1
  end
end
for i = 2, #KEYS do
  each('HSET', KEYS[i], 2 * ARGV[2 * i + 1])
  each('HDEL', KEYS[i], tonumber(ARGV[2 * i + 2]))
end
return wrote
