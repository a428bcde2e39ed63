-- Reads fields of a hash, until their values have enough bytes.
--
-- KEYS: the hash. ARGV: the number of bytes, then the fields.
-- Returns the values of the first fields, nil for those without.
local values, size = {}, 0
for i = 2, #ARGV do
  local value = redis.call('HGET', KEYS[1], ARGV[i])
  values[i - 1] = value
  if value then size = size + #value end
  if size >= tonumber(ARGV[1]) then break end
end
return values
