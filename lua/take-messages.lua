-- take-messages: gives messages that are due to one replica, for a time. Those that were never tried come first.
--
-- KEYS[1]  the messages, as in add-message.lua
-- KEYS[2]  what keeps replicas from sending, likewise
-- ARGV[1]  the receiver
-- ARGV[2]  most messages
-- ARGV[3]  most messages that were tried before
-- ARGV[4]  time in ms for which they are the caller's
-- ARGV[5]  life of the messages in ms, from now
-- ARGV[6]  life in ms of what keeps replicas from sending to a receiver that wants nothing
-- Reply    {"busy" | "gone" | "" if nothing keeps replicas from sending, number of messages that wait or are taken | -1 if the user may not
--          count them, number of messages in the reply that were never tried, then the messages}
-- Errors   Redis's own

local KEYS, ARGV, call, pcall, tonumber = KEYS, ARGV, redis.call, redis.pcall, tonumber
local messages, hold = KEYS[1], KEYS[2]
local receiver, most, most_repeated, lease_ms, life_ms, hold_life_ms =
  ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6]

-- No time in Unix s is later, and none in Unix ms is earlier.
local LAST_SECOND = 100000000000

local waiting = pcall('ZCARD', messages)
if type(waiting) ~= 'number' then waiting = -1 end
local held = pcall('GET', hold)
if held == 'gone ' .. receiver then
  call('PEXPIRE', hold, hold_life_ms)
  return { 'gone', waiting, 0 }
end
if held == 'busy ' .. receiver then return { 'busy', waiting, 0 } end

local time = call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local reply = { '', waiting, 0 }
local function take(from, to, count)
  local found = pcall('ZRANGEBYSCORE', messages, from, to, 'LIMIT', 0, count)
  if found.err then return 0 end
  for _, message in ipairs(found) do
    call('ZADD', messages, string.format('%.0f', now_ms + lease_ms), message)
    reply[#reply + 1] = message
  end
  return #found
end
local first = take('-inf', LAST_SECOND, most)
reply[3] = first
take('(' .. string.format('%.0f', LAST_SECOND), string.format('%.0f', now_ms), math.max(0, math.min(most_repeated, most - first)))
if #reply > 3 then call('PEXPIRE', messages, life_ms) end
return reply
