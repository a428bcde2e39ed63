-- Returns the next cursor and some fields of a hash without their values, which HSCAN
-- itself omits only since Redis 7.4.
--
-- KEYS: hash. ARGV: cursor, number of fields.
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local fields = {page[1]}
for i = 1, #page[2], 2 do fields[#fields + 1] = page[2][i] end
return fields
