-- read-shared: one page of the members of a sorted set that have not expired, in the order of their expiry.
--
-- KEYS[1]  a sorted set of members by the Unix time in ms of their expiry
-- ARGV[1]  expiry at which the page begins; an empty string for now
-- ARGV[2]  members of that expiry to skip, because an earlier page had them
-- ARGV[3]  most members in the page
-- ARGV[4]  longest member in bytes: a longer one is left out, so that it never leaves Redis
-- Reply    {time of Redis in ms since 1970, members found, of these left out, expiry at which the next page begins,
--          members of that expiry to skip, 1 if the key holds another type, which counts as no members | 0, then per member:
--          it, and its expiry}
-- Errors   Redis's own

local KEYS, ARGV, call, pcall, tonumber = KEYS, ARGV, redis.call, redis.pcall, tonumber
local from, skip, most, longest_bytes = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local time = call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if from == '' then from = string.format('(%.0f', now_ms) end

local found = pcall('ZRANGEBYSCORE', KEYS[1], from, '+inf', 'WITHSCORES', 'LIMIT', skip, most)
local is_wrong_type = found.err and string.sub(found.err, 1, 9) == 'WRONGTYPE'
if is_wrong_type then found = {} elseif found.err then return found end
local next_from, next_skip, left_out = from, skip, 0
local reply = { now_ms, #found / 2, 0, '', 0, is_wrong_type and 1 or 0 }
for place = 1, #found, 2 do
  local member, expiry = found[place], found[place + 1]
  next_skip = expiry == next_from and next_skip + 1 or 1
  next_from = expiry
  if #member > longest_bytes then
    left_out = left_out + 1
  else
    reply[#reply + 1] = member
    reply[#reply + 1] = expiry
  end
end
reply[3], reply[4], reply[5] = left_out, next_from, next_skip
return reply
