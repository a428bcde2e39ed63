-- Makes the caller the leader, unless the lease of another process has not ended. If the
-- caller leads already, because the answer of its first call was lost, the epoch stays: a
-- call that is carried out late deposes no leader. Keys of format 1 get the present format,
-- which programs of format 1 refuse.
--
-- KEYS: leader, leases, and the rows of each letter from a to z.
-- ARGV: format, id, name, lease in milliseconds, contact, and the most milliseconds for which a lease may last still:
-- one that lasts longer was taken before the clock was set back, and counts as ended.
-- Returns leads, epoch, batch, vacant in milliseconds, and what full.lua says; or why the caller does not lead: led,
-- name, since, left, contact; type, key, type; format, format; or headless, key.
for _, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'hash' and kind ~= 'none' then return {'type', key, kind} end
end

local leader = redis.call('HMGET', KEYS[1], 'format', 'epoch', 'batch', 'id', 'name', 'since', 'until',
  'contact')
local format, epoch, batch, id, name, since, ends, contact = unpack(leader)
if not format then
  for _, key in ipairs(KEYS) do
    if redis.call('EXISTS', key) == 1 then return {'headless', key} end
  end
  format, epoch, batch, ends = ARGV[1], '0', '0', '0'
end
if format ~= ARGV[1] and format ~= '1' then return {'format', format} end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if id ~= ARGV[2] and tonumber(ends) > now and ends - now <= tonumber(ARGV[6]) then
  return {'led', name, since, string.format('%.0f', ends - now), contact or ''}
end

local vacant = 0 -- of new keys nothing is known: the server may have lost the former ones
if id ~= ARGV[2] and tonumber(ends) > 0 then vacant = math.max(now - ends, 0) end
if id ~= ARGV[2] then epoch = string.format('%.0f', epoch + 1) end
local wrote = first('format', ARGV[1], 'epoch', epoch, 'batch', batch, 'id', ARGV[2], 'name', ARGV[3],
  'contact', ARGV[5], 'since', string.format('%.0f', now), 'until', string.format('%.0f', now + ARGV[4]))
if wrote.err then return wrote end
return {'leads', epoch, batch, string.format('%.0f', vacant), wrote[1]}
