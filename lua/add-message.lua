-- add-message: keeps a message until it is delivered. Where there are too many, drops the one that is due last: it has failed for the
-- longest time. Replaces a value that no replica wrote.
--
-- KEYS[1]  the messages: a sorted set by their next attempt, in Unix ms; by the time at which they were made, in Unix s, before their first
-- KEYS[2]  what keeps replicas from sending to the receiver: "busy" or "gone", a space, and the receiver
-- ARGV[1]  the receiver
-- ARGV[2]  the message
-- ARGV[3]  time in ms for which it is the caller's; 0 if the caller has no time for it
-- ARGV[4]  most messages
-- ARGV[5]  life of the messages in ms, from now
-- Reply    {"taken" if it is the caller's | "kept" | "gone" if the receiver wants nothing, messages dropped}
-- Errors   Redis's own

local KEYS, ARGV, call, pcall, tonumber = KEYS, ARGV, redis.call, redis.pcall, tonumber
local messages, hold = KEYS[1], KEYS[2]
local receiver, message, lease_ms, most, life_ms = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]

local held = pcall('GET', hold)
if held == 'gone ' .. receiver then return { 'gone', 0 } end
local is_taken = lease_ms > 0 and held ~= 'busy ' .. receiver

local time = call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local score = is_taken and string.format('%.0f', now_ms + lease_ms) or time[1]
local added = pcall('ZADD', messages, score, message)
if type(added) == 'table' and added.err then
  if string.sub(added.err, 1, 9) ~= 'WRONGTYPE' then return added end
  call('DEL', messages)
  call('ZADD', messages, score, message)
end
call('PEXPIRE', messages, life_ms)

local dropped = 0
if call('ZREVRANGE', messages, most, most)[1] then dropped = call('ZREM', messages, call('ZREVRANGE', messages, 0, 0)[1]) end
return { is_taken and 'taken' or 'kept', dropped }
