-- charge: spends points in every bucket of a decision, or in none. Several decisions may share one call; each is
-- decided by itself, in order, and one whose bucket cannot be read does not disturb its neighbours.
--
-- KEYS     the buckets of every decision, in order; all in one Cluster slot
-- ARGV[1]  now in µs since 1970, for tests; 0 for Redis TIME
-- ARGV     then per decision: window in µs, life of a written key in ms (at least 1.25 windows), cost in points,
--          number of buckets, and per bucket its limit in points, negative for a shadow bucket (it counts what fits,
--          and refuses nothing)
-- Reply    a flat array of integers; per decision 1 admitted | 0 denied, and per bucket
--          remaining points, µs until it is full again, µs until this cost fits (0 when it fitted);
--          or, instead of all that, one string: the error that kept the decision's buckets from being read
-- Errors   Redis's own; then nothing was written
--
-- The format of a bucket and why no window ever holds more than the limit: README.md.

local HEADER, HEADER_BYTES = '>I4I7I4', 15
local ENTRY, ENTRY_BYTES = '>I7I4', 11
local SLOTS_PER_WINDOW = 100

-- Fields of a bucket in this call. Arrays for records, and no function on the path of an admitted charge: a closure
-- over a dozen locals costs as much as a GET, and this script has 5 µs.
local KEY, LOG, OLDEST, TOTAL, NEWEST_US, NEWEST_POINTS, HAS_NEW_LOG, LIFE_MS = 1, 2, 3, 4, 5, 6, 7, 8

local KEYS, ARGV, call, pcall, tonumber = KEYS, ARGV, redis.call, redis.pcall, tonumber
local pack, unpack, sub = struct.pack, struct.unpack, string.sub

-- The clock went back: what was charged "later" counts as charged now, so it stays for one more window at most.
-- Returns the older entries that keep their times, and the points of the newest one.
local function rewind(log, newestPoints, nowUs)
  local kept = 16
  while kept <= #log and struct.unpack('>I7', log, kept) <= nowUs do kept = kept + 11 end
  for later = kept, #log, 11 do newestPoints = newestPoints + struct.unpack('>I4', log, later + 7) end
  return string.sub(log, 1, kept - 1), newestPoints
end

-- When the last of the oldest `points` was charged; nil when the newest entry holds it.
local function charged_at(log, oldest, points)
  for entry = oldest, #log, 11 do
    local atUs, entryPoints = struct.unpack('>I7I4', log, entry)
    points = points - entryPoints
    if points <= 0 then return atUs end
  end
end

local nowUs = tonumber(ARGV[1])
if nowUs == 0 then
  local time = call('TIME')
  nowUs = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local buckets, written, writes, reply, replied = {}, {}, 0, {}, 0
local nextKey, nextArg, argCount = 1, 2, #ARGV

while nextArg <= argCount do
  local windowUs, lifeMs, cost = tonumber(ARGV[nextArg]), ARGV[nextArg + 1], tonumber(ARGV[nextArg + 2])
  local lastKey, firstLimit = nextKey + tonumber(ARGV[nextArg + 3]) - 1, nextArg + 4
  local startUs, slotStartUs = nowUs - windowUs, nowUs - nowUs % (windowUs / SLOTS_PER_WINDOW)
  local admitted, problem = 1, nil

  -- Read: every bucket as it is now, and whether all have room.
  for i = nextKey, lastKey do
    local key, limit = KEYS[i], tonumber(ARGV[firstLimit + i - nextKey])
    local bucket = buckets[key]
    if not bucket then
      local value = pcall('GET', key)
      if not value then
        bucket = { key, '', 1, 0, 0, 0, true, false }
      elseif type(value) == 'table' then
        problem = value.err
      elseif #value < HEADER_BYTES or (#value - HEADER_BYTES) % ENTRY_BYTES ~= 0 then
        problem = 'WRONGVALUE the key holds no bucket of this version'
      else
        local total, newestUs, newestPoints = unpack(HEADER, value)
        bucket = { key, value, 16, total, newestUs, newestPoints, false, false }
        if newestUs > nowUs then
          bucket[LOG], bucket[NEWEST_POINTS] = rewind(value, newestPoints, nowUs)
          bucket[NEWEST_US], bucket[HAS_NEW_LOG], bucket[LIFE_MS] = nowUs, true, lifeMs
          writes = writes + 1
          written[writes] = bucket
        end
      end
      if problem then break end
      buckets[key] = bucket
    end
    local total = bucket[TOTAL]
    if total > 0 and bucket[NEWEST_US] <= startUs then
      total = 0
      bucket[LOG], bucket[OLDEST], bucket[TOTAL], bucket[NEWEST_POINTS], bucket[HAS_NEW_LOG] = '', 1, 0, 0, true
    else
      local log, oldest = bucket[LOG], bucket[OLDEST]
      while oldest <= #log do
        local atUs, points = unpack(ENTRY, log, oldest)
        if atUs > startUs then break end
        total, oldest = total - points, oldest + ENTRY_BYTES
        bucket[OLDEST], bucket[TOTAL], bucket[HAS_NEW_LOG] = oldest, total, true
      end
    end
    if limit > 0 and total + cost > limit then admitted = 0 end
  end

  -- Spend and reply.
  replied = replied + 1
  reply[replied] = problem or admitted
  for i = nextKey, problem and 0 or lastKey do
    local bucket, limit = buckets[KEYS[i]], tonumber(ARGV[firstLimit + i - nextKey])
    local total, retryAfterUs = bucket[TOTAL], 0
    if limit < 0 then limit = -limit end
    if total + cost > limit then
      retryAfterUs = windowUs
      if cost <= limit then
        retryAfterUs = (charged_at(bucket[LOG], bucket[OLDEST], total + cost - limit) or bucket[NEWEST_US]) - startUs
      end
    elseif admitted == 1 then
      local newestPoints = bucket[NEWEST_POINTS]
      if newestPoints > 0 and bucket[NEWEST_US] >= slotStartUs then
        bucket[NEWEST_POINTS] = newestPoints + cost
      else
        if newestPoints > 0 then bucket[LOG] = bucket[LOG] .. pack(ENTRY, bucket[NEWEST_US], newestPoints) end
        bucket[NEWEST_POINTS], bucket[HAS_NEW_LOG] = cost, true
      end
      total = total + cost
      bucket[TOTAL], bucket[NEWEST_US] = total, nowUs
      if not bucket[LIFE_MS] then
        writes = writes + 1
        written[writes] = bucket
      end
      bucket[LIFE_MS] = lifeMs
    end
    reply[replied + 1] = total < limit and limit - total or 0
    reply[replied + 2] = total > 0 and bucket[NEWEST_US] - startUs or 0
    reply[replied + 3] = retryAfterUs
    replied = replied + 3
  end
  nextArg, nextKey = firstLimit + lastKey - nextKey + 1, lastKey + 1
end

-- Write: only after every bucket of every decision has been read.
for i = 1, writes do
  local bucket = written[i]
  local header = pack(HEADER, bucket[TOTAL], bucket[NEWEST_US], bucket[NEWEST_POINTS])
  if bucket[HAS_NEW_LOG] then
    if bucket[OLDEST] <= #bucket[LOG] then header = header .. sub(bucket[LOG], bucket[OLDEST]) end
    call('PSETEX', bucket[KEY], bucket[LIFE_MS], header)
  else
    call('SETRANGE', bucket[KEY], '0', header) -- the key keeps the life that its newest entry was opened with
  end
end
return reply
