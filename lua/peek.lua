-- peek: what charge would answer, without spending anything.
--
-- KEYS     the buckets of one decision; all in one Cluster slot
-- ARGV     now in µs since 1970, for tests, or 0 for Redis TIME; window in µs; cost in points; and per bucket its limit
--          in points, negative for a shadow bucket
-- Reply    a flat array of integers: 1 would be admitted | 0 would be denied, and per bucket
--          remaining points, µs until it is full again, µs until this cost fits (0 when it fits)
-- Errors   WRONGTYPE, WRONGVALUE: a key holds no bucket
--
-- The format of a bucket: README.md.

local HEADER, HEADER_BYTES = '>I4I7I4', 15
local ENTRY, ENTRY_BYTES = '>I7I4', 11

local nowUs, windowUs, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if nowUs == 0 then
  local time = redis.call('TIME')
  nowUs = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- Returns the entries that still count, oldest first: times in µs and points. See charge.lua for a clock that went back.
local function entries_of(value)
  local times, points, latestUs, bucketUs = {}, {}, math.huge, nowUs
  local function keep(atUs, entryPoints)
    if atUs + windowUs <= bucketUs then return end
    times[#times + 1], points[#points + 1] = math.min(atUs, latestUs), entryPoints
  end
  if value then
    local newestUs = struct.unpack('>I7', value, 5)
    bucketUs = math.max(nowUs, newestUs)
    if newestUs > nowUs + windowUs then latestUs = nowUs end
    for entry = HEADER_BYTES + 1, #value, ENTRY_BYTES do
      local atUs, entryPoints = struct.unpack(ENTRY, value, entry)
      keep(atUs, entryPoints)
    end
    local _, newestUs, newestPoints = struct.unpack(HEADER, value)
    keep(newestUs, newestPoints)
  end
  return times, points
end

local reply = { 1 }
for i, key in ipairs(KEYS) do
  local value, limit = redis.call('GET', key), tonumber(ARGV[3 + i])
  if value and (#value < HEADER_BYTES or (#value - HEADER_BYTES) % ENTRY_BYTES ~= 0) then
    return redis.error_reply('WRONGVALUE the key holds no bucket of this version')
  end
  local times, points = entries_of(value)
  local total = 0
  for _, entryPoints in ipairs(points) do total = total + entryPoints end
  local mayRefuse, retryAfterUs = limit > 0, 0
  limit = math.abs(limit)
  local excess = total + cost - limit
  if excess > 0 then
    if mayRefuse then reply[1] = 0 end
    retryAfterUs = windowUs
    if cost <= limit then
      local oldest = 1
      while excess > points[oldest] do
        excess, oldest = excess - points[oldest], oldest + 1
      end
      retryAfterUs = times[oldest] + windowUs - nowUs
    end
  end
  reply[#reply + 1] = math.max(limit - total, 0)
  reply[#reply + 1] = total > 0 and times[#times] + windowUs - nowUs or 0
  reply[#reply + 1] = retryAfterUs
end
return reply
