-- put-back: adds to buckets what the journal has of them and Redis has lost. No bucket gets fewer points than it has, at any time until
-- they expire, so a call may be repeated.
--
-- KEYS     the mark of mark.lua, then the buckets; all in one Cluster slot
-- ARGV[1]  the name of the recovery
-- ARGV     then texts of decimal numbers, separated by single spaces
-- ARGV[2]  the call, two numbers:
--            now       µs since 1970, for tests; 0 for Redis TIME
--            life      of a written key in ms, for tests with a clock of their own; 0 for one and a half windows
-- ARGV     then a text per bucket
--            of a window   its length in s, then times and the points that were charged until each of them and after the one before: s
--                          since 1970, in rising order. A time ahead of now counts as now
--            of a period   its start and its end in s since 1970, then one time and the points of the period, likewise
-- Reply    two numbers: the buckets that were changed, and the points that were added to them
-- Errors   ENDED if this recovery does not have the mark; then nothing was written. Points that it has read may have been given back
--          since
--          Redis's own; then some of the buckets may have been changed
--
-- README.md describes the format of a bucket, and why points are never put back too early.

local HEADER, HEADER_BYTES = '>I4I7I4', 15
local ENTRY, ENTRY_BYTES, MOST_ENTRIES = '>I7I4', 11, 601
local COUNT, COUNT_BYTES, KEPT_US = '>I7I5', 12, 900000000
local SLOTS_PER_WINDOW, US_PER_SECOND = 100, 1000000
local ONE_TIME = '^(%d+) (%d+) (%d+) ?(%d*)$'
local MOST_POINTS, LARGEST_NUMBER = 4000000000, 9007199254740992

local KEYS, ARGV, call, pcall = KEYS, ARGV, redis.call, redis.pcall
local pack, unpack, match = struct.pack, struct.unpack, string.match
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

local mark = pcall('GET', KEYS[1])
if type(mark) ~= 'string' or match(mark, '^%* (%S+)') ~= ARGV[1] then
  return redis.error_reply('ENDED Redis has lost the mark of this recovery, or another recovery has taken it')
end

local nowUs, givenLifeMs = match(ARGV[2], '(%d+) (%d+)')
nowUs, givenLifeMs = nowUs + 0, givenLifeMs + 0
if nowUs == 0 then
  local time = call('TIME')
  nowUs = time[1] * US_PER_SECOND + time[2]
end

-- Returns the times and the points of the entries that count, newest first. A value that no release has written has none: the next
-- charge would replace it.
local function stored_entries(log, startUs)
  local times, points = {}, {}
  if log.err or #log < HEADER_BYTES or (#log - HEADER_BYTES) % ENTRY_BYTES ~= 0 then return times, points end
  local total, newestUs, newestPoints = unpack(HEADER, log)
  if newestPoints == 0 or newestUs <= startUs then return times, points end
  times[1], points[1] = newestUs, newestPoints
  for entry = #log - ENTRY_BYTES + 1, HEADER_BYTES + 1, -ENTRY_BYTES do
    local atUs, entryPoints = unpack(ENTRY, log, entry)
    if atUs > times[#times] then return {}, {} end
    if atUs <= startUs then break end
    times[#times + 1], points[#points + 1] = atUs, entryPoints
  end
  return times, points
end

-- Returns the same of the journal.
local function recorded_entries(numbers, startUs)
  local times, points = {}, {}
  for i = #numbers - 1, 2, -2 do
    local atUs = min(numbers[i] * US_PER_SECOND, nowUs)
    if atUs <= startUs then break end
    times[#times + 1], points[#points + 1] = atUs, numbers[i + 1]
  end
  return times, points
end

-- Returns entries, newest first, which at any time have as many later points as the one or the other, whichever has more; then their sum,
-- and the sum of the first ones.
local function merge(timesA, pointsA, timesB, pointsB)
  local times, points, a, b, sumA, sumB, sum, last = {}, {}, 1, 1, 0, 0, 0, 0
  while timesA[a] or timesB[b] do
    local atUs = max(timesA[a] or 0, timesB[b] or 0)
    while timesA[a] == atUs do sumA, a = sumA + pointsA[a], a + 1 end
    while timesB[b] == atUs do sumB, b = sumB + pointsB[b], b + 1 end
    local wanted = min(MOST_POINTS, max(sumA, sumB))
    if wanted > sum then
      last = last + 1
      times[last], points[last], sum = atUs, wanted - sum, wanted
    end
  end
  return times, points, sum, sumA
end

-- Joins entries of the same 1/100 of a window, at the time of the newest of them.
local function join(times, points, slotUs)
  local joinedTimes, joinedPoints, last = {}, {}, 0
  for i = 1, #times do
    if last > 0 and floor(joinedTimes[last] / slotUs) == floor(times[i] / slotUs) then
      joinedPoints[last] = joinedPoints[last] + points[i]
    else
      last = last + 1
      joinedTimes[last], joinedPoints[last] = times[i], points[i]
    end
  end
  return joinedTimes, joinedPoints
end

-- The key lives at least as long as it would have: another replica may count with a longer window.
local function write(key, lifeMs, value)
  if givenLifeMs > 0 then
    lifeMs = givenLifeMs
  else
    local leftMs = pcall('PTTL', key)
    if type(leftMs) == 'number' and leftMs > lifeMs then lifeMs = leftMs end
  end
  call('PSETEX', key, max(1, ceil(lifeMs)), value)
end

-- Each returns the points that it adds.
local function put_window(key, numbers)
  local windowUs = numbers[1] * US_PER_SECOND
  local startUs = nowUs - windowUs
  local storedTimes, storedPoints = stored_entries(pcall('GETRANGE', key, '0', '65535'), startUs)
  local newTimes, newPoints = recorded_entries(numbers, startUs)
  local times, points, sum, stored = merge(storedTimes, storedPoints, newTimes, newPoints)
  local isSame = #times == #storedTimes
  for i = 1, isSame and #times or 0 do
    if times[i] ~= storedTimes[i] or points[i] ~= storedPoints[i] then isSame = false break end
  end
  if isSame then return nil end
  if #times > MOST_ENTRIES then times, points = join(times, points, windowUs / SLOTS_PER_WINDOW) end
  local older = {}
  for i = #times, 2, -1 do older[#older + 1] = pack(ENTRY, times[i], points[i]) end
  write(key, (1.5 * windowUs + times[1] - nowUs) / 1000, pack(HEADER, sum, times[1], points[1]) .. table.concat(older))
  return sum - stored
end

local function put_period(key, numbers)
  local startUs, endUs, atUs, points = numbers[1] * US_PER_SECOND, numbers[2] * US_PER_SECOND, numbers[3] * US_PER_SECOND, numbers[4]
  if nowUs >= endUs then return nil end
  local value, stored, storedUs = pcall('GETRANGE', key, '0', '12'), 0, 0
  if not value.err and #value == COUNT_BYTES then
    local total, atSeconds = unpack(COUNT, value)
    -- The journal has nothing of a later period.
    if atSeconds * US_PER_SECOND >= endUs then return nil end
    if atSeconds * US_PER_SECOND >= startUs and total <= LARGEST_NUMBER then stored, storedUs = total, atSeconds * US_PER_SECOND end
  end
  points = min(points, LARGEST_NUMBER)
  if points <= stored then return nil end
  atUs = max(startUs, storedUs, min(atUs, nowUs, endUs - US_PER_SECOND))
  write(key, (endUs - nowUs + KEPT_US) / 1000, pack(COUNT, points, floor(atUs / US_PER_SECOND)))
  return points - stored
end

local function put(key, text)
  local numbers = {}
  for number in string.gmatch(text, '%-?%d+') do numbers[#numbers + 1] = number + 0 end
  -- A window has an odd count of numbers.
  return #numbers % 2 == 1 and put_window(key, numbers) or #numbers == 4 and put_period(key, numbers)
end

-- The lives of new keys as texts, by their first two numbers: Redis takes a microsecond to write a number.
local lives = {}

local function life_of(first, second, lifeMs)
  local name = first .. second
  local life = lives[name]
  if not life then
    life = string.format('%.0f', max(1, ceil(givenLifeMs > 0 and givenLifeMs or lifeMs)))
    lives[name] = life
  end
  return life
end

-- Writes a key that does not exist and gets one time, as nearly all do where Redis is empty: the same value in a quarter of the time.
-- Returns the points, or nil if this is another key.
local function put_new(key, text)
  local first, second, third, fourth = match(text, ONE_TIME)
  if not first then return nil end
  local points, life, value = third + 0, nil, nil
  if fourth == '' then
    local windowUs, atUs = first * US_PER_SECOND, min(second * US_PER_SECOND, nowUs)
    if points == 0 or points > MOST_POINTS or atUs <= nowUs - windowUs then return nil end
    life, value = life_of(first, second, (1.5 * windowUs + atUs - nowUs) / 1000), pack(HEADER, points, atUs, points)
  else
    local startUs, endUs, atUs = first * US_PER_SECOND, second * US_PER_SECOND, third * US_PER_SECOND
    points = fourth + 0
    if nowUs >= endUs or points == 0 or points > LARGEST_NUMBER then return nil end
    atUs = max(startUs, min(atUs, nowUs, endUs - US_PER_SECOND))
    life, value = life_of(first, second, (endUs - nowUs + KEPT_US) / 1000), pack(COUNT, points, floor(atUs / US_PER_SECOND))
  end
  return call('SET', key, value, 'PX', life, 'NX') and points
end

local changed, added = 0, 0
for i = 2, #KEYS do
  local key, text = KEYS[i], ARGV[i + 1]
  local points = put_new(key, text) or put(key, text)
  if points then changed, added = changed + 1, added + points end
end
return { changed, added }
