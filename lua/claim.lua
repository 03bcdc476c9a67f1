-- claim: records that one replica does a task for all, unless another replica has claimed it. Replaces a value that no replica wrote.
--
-- KEYS[1]  the claim
-- ARGV[1]  its life in ms
-- Reply    1 if this is the first claim within its life | 0
-- Errors   Redis's own; then nothing was written

local KEYS, ARGV, call, pcall = KEYS, ARGV, redis.call, redis.pcall
local claim, life_ms, CLAIMED = KEYS[1], ARGV[1], '1'

if call('SET', claim, CLAIMED, 'PX', life_ms, 'NX') then return 1 end
-- Every claim expires.
if pcall('GET', claim) == CLAIMED and call('PTTL', claim) >= 0 then return 0 end
call('SET', claim, CLAIMED, 'PX', life_ms)
return 1
