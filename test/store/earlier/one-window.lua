-- charge: spends points in every bucket of a decision, or in none. Several decisions may share one call; each is
-- decided by itself, in order, and one whose bucket cannot be read does not affect the others.
--
-- KEYS     the buckets of every decision, in order; all in one Cluster slot
-- ARGV[1]  now in µs since 1970, for tests; 0 for Redis TIME
-- ARGV[2]  1 to charge; 0 to peek, which decides the same and writes nothing
-- ARGV     then per decision: window in µs, life of a written key in ms (at least 1.25 windows), cost in points,
--          number of buckets, and per bucket its limit in points, negative for a shadow bucket (it counts what fits,
--          and refuses nothing)
-- Reply    one string of big-endian integers; per decision 1 byte, 1 admitted | 0 denied, and per bucket
--          4 bytes remaining points, 6 bytes µs until it is full again, 6 bytes µs until this cost fits (0 when it fits);
--          or, instead of all that, one byte 2, a length of 2 bytes and the error that kept the buckets from being read
-- Errors   Redis's own; then nothing was written
--
-- README.md describes the format of a bucket, and why no window ever holds more than the limit.

local HEADER, HEADER_BYTES = '>I4I7I4', 15
local ENTRY, ENTRY_BYTES = '>I7I4', 11
local STATE, PROBLEM = '>I4I6I6', '>BI2c0'
-- A charge joins the newest entry if both are in the same 1/100 of the window and hold at most 1/250 of the limit.
local SLOTS_PER_WINDOW, ENTRIES_PER_LIMIT = 100, 250
-- A bucket's first read covers the header and the 16 oldest entries, which is all that most decisions need: the cost
-- of a decision then does not grow with the bucket.
local FIRST_READ_BYTES, FIRST_READ_END = HEADER_BYTES + 16 * ENTRY_BYTES, '190'
-- A write changes the header and appends. A key is written whole to drop expired entries, eight or more at a time, and
-- to renew its life, once a quarter of a window.
local FIRST_COMPACTED, RENEWALS_PER_WINDOW = 1 + HEADER_BYTES + 8 * ENTRY_BYTES, 4

-- Fields of a bucket in this call. OLDEST is the place in LOG of the oldest entry that counts, EXPIRED the points of
-- those before it, ADDED the entries that this call appends. Arrays instead of records, and no function on the path of
-- an admitted charge: a closure over a dozen locals costs as much as a GET, and this script has 8 µs.
local KEY, LOG, IS_WHOLE, OLDEST, TOTAL, EXPIRED = 1, 2, 3, 4, 5, 6
local NEWEST_US, NEWEST_POINTS, ADDED, IS_REWRITTEN, LIFE_MS = 7, 8, 9, 10, 11

local KEYS, ARGV, call, pcall, tonumber = KEYS, ARGV, redis.call, redis.pcall, tonumber
local pack, unpack, sub = struct.pack, struct.unpack, string.sub

local function whole_log(bucket)
  if not bucket[IS_WHOLE] then bucket[LOG], bucket[IS_WHOLE] = redis.call('GET', bucket[KEY]), true end
  return bucket[LOG]
end

-- The clock went back by more than a window: what still counted then counts as charged now, for one more window.
local function rewind(bucket, nowUs, windowUs)
  local log, total, endUs = whole_log(bucket), bucket[NEWEST_POINTS], bucket[NEWEST_US] - windowUs
  for entry = 16, #log, 11 do
    local atUs, points = struct.unpack('>I7I4', log, entry)
    if atUs > endUs then total = total + points end
  end
  bucket[LOG], bucket[OLDEST], bucket[TOTAL], bucket[NEWEST_US], bucket[NEWEST_POINTS] = '', 1, total, nowUs, total
  bucket[IS_REWRITTEN] = true
end

-- When the last of the oldest `points` was charged.
local function charged_at(bucket, points)
  local log, entry, is_complete = bucket[LOG], bucket[OLDEST], false
  while true do
    while entry <= #log do
      local atUs, entryPoints = struct.unpack('>I7I4', log, entry)
      points, entry = points - entryPoints, entry + 11
      if points <= 0 then return atUs end
    end
    if is_complete then return bucket[NEWEST_US] end
    log, is_complete = whole_log(bucket) .. bucket[ADDED], true
  end
end

local nowUs = tonumber(ARGV[1])
if nowUs == 0 then
  local time = call('TIME')
  nowUs = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local isSpending = ARGV[2] == '1'
local buckets, written, writes, reply, replied = {}, {}, 0, {}, 0
local nextKey, nextArg, argCount = 1, 3, #ARGV

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
      local value = pcall('GETRANGE', key, '0', FIRST_READ_END)
      if value == '' then
        bucket = { key, '', true, 1, 0, 0, 0, 0, '', true, false }
      elseif type(value) == 'table' then
        problem = value.err
      elseif #value < HEADER_BYTES or (#value - HEADER_BYTES) % ENTRY_BYTES ~= 0 then
        problem = 'WRONGVALUE the key holds no bucket of this version'
      else
        local total, newestUs, newestPoints = unpack(HEADER, value)
        bucket = { key, value, #value < FIRST_READ_BYTES, 16, total, 0, newestUs, newestPoints, '', false, false }
        if newestUs > nowUs + windowUs then
          rewind(bucket, nowUs, windowUs)
          bucket[LIFE_MS] = lifeMs
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
      bucket[LOG], bucket[IS_WHOLE], bucket[OLDEST], bucket[TOTAL], bucket[EXPIRED] = '', true, 1, 0, 0
      bucket[NEWEST_POINTS], bucket[IS_REWRITTEN] = 0, true
    else
      local log, oldest, expired, expiredUs = bucket[LOG], bucket[OLDEST], 0, startUs
      -- The clock went back by less: it stands still for this bucket until it has caught up.
      if bucket[NEWEST_US] > nowUs then expiredUs = bucket[NEWEST_US] - windowUs end
      while true do
        if oldest > #log then log = whole_log(bucket) end
        if oldest > #log then break end
        local atUs, points = unpack(ENTRY, log, oldest)
        if atUs > expiredUs then break end
        expired, oldest = expired + points, oldest + ENTRY_BYTES
      end
      if expired > 0 then
        total = total - expired
        bucket[TOTAL], bucket[EXPIRED], bucket[OLDEST] = total, bucket[EXPIRED] + expired, oldest
        if oldest >= FIRST_COMPACTED then bucket[IS_REWRITTEN] = true end
      end
    end
    if limit > 0 and total + cost > limit then admitted = 0 end
  end

  -- Spend and reply.
  replied = replied + 1
  if problem then
    reply[replied] = pack(PROBLEM, 2, #problem, problem)
  else
    reply[replied] = admitted == 1 and '\1' or '\0'
  end
  for i = nextKey, problem and 0 or lastKey do
    local bucket, limit = buckets[KEYS[i]], tonumber(ARGV[firstLimit + i - nextKey])
    local total, retryAfterUs = bucket[TOTAL], 0
    if limit < 0 then limit = -limit end
    if total + cost > limit then
      retryAfterUs = windowUs
      if cost <= limit then retryAfterUs = charged_at(bucket, total + cost - limit) - startUs end
    elseif admitted == 1 and isSpending then
      local newestUs, newestPoints = bucket[NEWEST_US], bucket[NEWEST_POINTS]
      if newestPoints > 0
        and (newestUs >= nowUs or newestUs >= slotStartUs and (newestPoints + cost) * ENTRIES_PER_LIMIT <= limit) then
        bucket[NEWEST_POINTS] = newestPoints + cost
      else
        if newestPoints > 0 then
          bucket[ADDED] = pack(ENTRY, newestUs, newestPoints)
          if newestUs < nowUs - nowUs % (windowUs / RENEWALS_PER_WINDOW) then bucket[IS_REWRITTEN] = true end
        end
        bucket[NEWEST_POINTS] = cost
      end
      total = total + cost
      bucket[TOTAL] = total
      if newestUs < nowUs then bucket[NEWEST_US] = nowUs end
      if not bucket[LIFE_MS] then
        writes = writes + 1
        written[writes] = bucket
      end
      bucket[LIFE_MS] = lifeMs
    end
    replied = replied + 1
    reply[replied] =
      pack(STATE, total < limit and limit - total or 0, total > 0 and bucket[NEWEST_US] - startUs or 0, retryAfterUs)
  end
  nextArg, nextKey = firstLimit + lastKey - nextKey + 1, lastKey + 1
end

-- Write: only after every bucket of every decision has been read.
for i = 1, isSpending and writes or 0 do
  local bucket = written[i]
  if bucket[IS_REWRITTEN] then
    local lifeMs, newestUs = bucket[LIFE_MS], bucket[NEWEST_US]
    if newestUs > nowUs then lifeMs = lifeMs + math.ceil((newestUs - nowUs) / 1000) end
    local header = pack(HEADER, bucket[TOTAL], newestUs, bucket[NEWEST_POINTS])
    call('PSETEX', bucket[KEY], lifeMs, header .. sub(whole_log(bucket), bucket[OLDEST]) .. bucket[ADDED])
  else
    if bucket[ADDED] ~= '' then call('APPEND', bucket[KEY], bucket[ADDED]) end
    call('SETRANGE', bucket[KEY], '0', pack(HEADER, bucket[TOTAL] + bucket[EXPIRED], bucket[NEWEST_US], bucket[NEWEST_POINTS]))
  end
end
return table.concat(reply)
