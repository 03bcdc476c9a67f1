-- read-board: the texts of several keys.
--
-- KEYS     keys that hold strings, all in one Cluster slot
-- ARGV[1]  longest text in bytes: a longer one is left out, so that it never leaves Redis
-- Reply    per key its text, nil if the key does not exist, or the integer 0 if its text was left out
-- Errors   Redis's own

local longest_bytes = tonumber(ARGV[1])
local texts = redis.call('MGET', unpack(KEYS))
for place = 1, #KEYS do
  if texts[place] and #texts[place] > longest_bytes then texts[place] = 0 end
end
return texts
