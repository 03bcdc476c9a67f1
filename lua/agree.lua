-- agree: returns the text that all replicas use, such as a key for signatures: the first one that a replica proposes. Replaces a value that
-- no replica wrote.
--
-- KEYS[1]  the text
-- ARGV[1]  the text that is proposed
-- ARGV[2]  the life of the text in ms, from now
-- Reply    the text
-- Errors   Redis's own; then nothing was written

local KEYS, ARGV, call, pcall = KEYS, ARGV, redis.call, redis.pcall
local key, proposed, life_ms = KEYS[1], ARGV[1], ARGV[2]

local known = pcall('GET', key)
if type(known) == 'string' and #known == #proposed and string.find(known, '^[%w_-]+$') then
  call('PEXPIRE', key, life_ms)
  return known
end
call('SET', key, proposed, 'PX', life_ms)
return proposed
