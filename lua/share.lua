-- share: records facts that the replicas share, and publishes them, in one step. Replaces a record of another type.
--
-- KEYS[1]  the record: a sorted set of the messages by the Unix time in ms of their expiry
-- ARGV[1]  the channel; empty to record without publishing
-- ARGV[2]  number of messages
-- ARGV     then per message: its expiry in ms since 1970, its text; then the texts that the messages replace
-- Reply    {1 published | 0 not published, number of subscribers that received the last message (in a Cluster: at this node),
--          the error of PUBLISH, or an empty string}
-- Errors   Redis's own; then nothing was recorded and nothing published
--
-- A user who lacks a right fails before the first write: reading and expiry come first, and nothing that may fail follows the
-- write except what is reported or only tidies up.

local KEYS, ARGV, call, pcall, tonumber = KEYS, ARGV, redis.call, redis.pcall, tonumber
local record, channel, count = KEYS[1], ARGV[1], tonumber(ARGV[2])
local FIRST = 3
local LONGEST_MS = 3660 * 86400000

local time = call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local last = pcall('ZREVRANGE', record, 0, 0, 'WITHSCORES')
if last.err then
  if string.sub(last.err, 1, 9) ~= 'WRONGTYPE' then return last end
  call('DEL', record)
  last = {}
end
local last_ms = tonumber(last[2]) or 0
for place = FIRST, FIRST + 2 * count - 1, 2 do
  last_ms = math.max(last_ms, tonumber(ARGV[place]))
end
-- Another program may have written any expiry, even an infinite one. No fact is kept for longer than ten years.
local life_text = string.format('%.0f', math.min(last_ms, now_ms + LONGEST_MS))
local has_life = call('PEXPIREAT', record, life_text)

for place = FIRST, FIRST + 2 * count - 1, 2 do
  call('ZADD', record, ARGV[place], ARGV[place + 1])
end
if has_life == 0 then call('PEXPIREAT', record, life_text) end

for place = FIRST + 2 * count, #ARGV do
  pcall('ZREM', record, ARGV[place])
end
pcall('ZREMRANGEBYSCORE', record, '-inf', string.format('%.0f', now_ms))

if channel == '' then return { 0, 0, '' } end
local received = 0
for place = FIRST, FIRST + 2 * count - 1, 2 do
  local reply = pcall('PUBLISH', channel, ARGV[place + 1])
  if type(reply) == 'table' then return { 0, 0, reply.err } end
  received = reply
end
return { 1, received, '' }
