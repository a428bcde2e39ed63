-- first makes the first write of a script: HSET of fields of the leader. A server whose memory is full refuses HSET,
-- but only as long as the script has not written. HDEL is a write that is never refused for that reason.
-- first returns {'full'} if the memory is full, another error as it is, and otherwise {}.
local function first(...)
  local answer = redis.pcall('HSET', KEYS[1], ...)
  if type(answer) ~= 'table' or not answer.err then return {} end
  if not string.find(answer.err, 'OOM', 1, true) then return {err = (string.gsub(answer.err, '^-', ''))} end
  redis.call('HDEL', KEYS[1], '')
  redis.call('HSET', KEYS[1], ...)
  return {'full'}
end
