-- Returns the values of the first fields, until they have a number of bytes.
--
-- KEYS: hash. ARGV: bytes, then fields.
local values, bytes = {}, 0
for i = 2, #ARGV do
  local value = redis.call('HGET', KEYS[1], ARGV[i])
  values[i - 1] = value
  if value then bytes = bytes + #value end
  if bytes >= tonumber(ARGV[1]) then break end
end
return values
