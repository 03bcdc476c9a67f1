-- settle: gives back what charges did not cost in the end, or adds what they cost on top. A call may have several settlements, which are
-- applied in order. Each is applied once, however often it is sent: a marker is set with it. A bucket that cannot be read, or has a value
-- that no release has written, is left to its next charge, which reports it; the other buckets are settled.
--
-- KEYS     with a mark, its key first; then per settlement its marker, then the buckets of its charge, windows before periods, and the
--          slots that it frees last; all in one Cluster slot
-- ARGV     texts of decimal numbers, separated by single spaces
-- ARGV[1]  the call, two numbers and a text:
--            now       µs since 1970, for tests; 0 for Redis TIME
--            life      of a written key in ms, for tests with a clock of their own; 0 for one and a half windows
--            mark      as in charge.lua. Left out if no bucket is durable
-- ARGV     then a text per settlement, three numbers and a text:
--            charged   when the charge was made, µs since 1970, as its reply says. 0 if that is unknown: the points that were charged
--                      first, of those that count, are given back, or points of the present period
--            marked    life of the marker in ms, from now or from the end: the settlement must not be sent again for longer
--            end       µs since 1970, after which the settlement comes too late; 0 for never
--            nonce     letters, digits, _ and -, 40 at most. Of the calls that send this settlement, only repetitions of one call have the
--                      same. May be empty
--          and per bucket, after a comma, four numbers:
--            life      of its key in ms (one and a half windows)
--            cost      points that were charged
--            final     points that the charge costs in the end
--            limit     of the bucket, in points
--          and per bucket of a period, after a semicolon, six numbers: the start of a period in seconds since 1970, its length
--          and the length of the next one in seconds, then cost, final and limit. Points are given back only in the period of the charge,
--          or in the present one if the time of the charge is unknown
--          In both, ! after the limit, as in charge.lua: the bucket is durable
--          and per key of slots, after a #, the time in ms for which the charge took one that belongs to no replica
-- Reply    one string of big-endian integers; per settlement
--            1 byte   1 settled | 0 it was settled before | 2 it came too late | 3 the counts of its durable buckets are missing
--                     | 4 now is in neither period of a bucket; then 7 bytes follow, now in ms since 1970.
--                     | 5 it was settled before, by a call with this nonce.
--                     With all but 1, nothing was changed. Points that are added to a bucket before it is put back would be lost
--            and per bucket
--            1 byte   1, or 0 if it cannot be read; then nothing follows
--            4 bytes  remaining points
--            6 bytes  µs until the bucket is full again
--            4 bytes  points that this settlement added above the limit
--          and per bucket of a period
--            1 byte   1, or 0 if it cannot be read, or if now is in neither of its periods; then nothing follows
--            7 bytes  remaining points
--            6 bytes  µs until the period ends
--            7 bytes  points that this settlement added above the limit
-- Errors   Redis's own; then the settlements after the failed one were not applied, and may be sent again with the others
--
-- README.md describes the format of a bucket, and why no window ever holds more than the limit if nothing is added.

local HEADER, HEADER_BYTES = '>I4I7I4', 15
local ENTRY, ENTRY_BYTES = '>I7I4', 11
local STATE, UNKNOWN = '>BI4I6I4', '\0'
local SLOTS_PER_WINDOW, ENTRIES_PER_LIMIT, MOST_EXPIRED = 100, 250, 601
local US_PER_SECOND, US_PER_MINUTE = 1000000, 60000000
-- A total has 32 bits. Charges stay below a limit, which is at most half of this.
local MOST_POINTS = 4000000000
local ALREADY, SETTLED, ENDED, MISSING, MOVED, REPEATED = '\0', '\1', '\2', '\3', '>BI7', '\5'
-- The value of a marker, before the nonce.
local MARKED, MARKER_END = '1', '40'
local CALL, SETTLEMENT, BUCKET = '(%d+) (%d+) ?(%S*)', '^(%d+) (%d+) (%d+) ?([%w_-]*)', ',(%d+) (%d+) (%d+) (%d+)(!?)'
local PERIOD, PERIOD_STATE = ';(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)', '>BI7I6I7'
local SPAN = ';(%d+) (%d+) (%d+)'
-- As in charge.lua: slots of no replica, and their leases.
local SLOT, LEASE, LEASE_BYTES = '#(%d+)', '>c16I6I4I7', 33
local HELD_ID, HELD_SHORT_MS, HELD_END_US, HELD_LONG_END_US = '~%015.0f', 60000, 1000000, 10000000
-- As in charge.lua: a bucket of a period, and how long its key outlives it.
local COUNT, COUNT_BYTES, KEPT_US = '>I7I5', 12, 900000000
local LARGEST_NUMBER = 9007199254740992

local KEYS, ARGV, call, pcall = KEYS, ARGV, redis.call, redis.pcall
local pack, unpack, sub, floor = struct.pack, struct.unpack, string.sub, math.floor

local nowUs, givenLifeMs, mark = string.match(ARGV[1], CALL)
local is_missing
nowUs, givenLifeMs = nowUs + 0, givenLifeMs + 0
if nowUs == 0 then
  local time = call('TIME')
  nowUs = time[1] * US_PER_SECOND + time[2]
end
if mark ~= '' then
  if mark == '?' then
    local info = pcall('INFO', 'replication')
    mark = not info.err and string.match(info, 'master_replid:(%x+)') or '-'
  end
  local found = pcall('GET', KEYS[1])
  if found ~= mark then
    -- As in charge.lua: some buckets are back already.
    local recovery, id = string.match(type(found) == 'string' and found or '', '^%* (%S+) (%S+)$')

    function is_missing(text, firstKey)
      local key = firstKey - 1
      for sign in string.gmatch(text, '[,;][%d ]+(!?)') do
        key = key + 1
        if sign ~= '' and (id ~= mark or pcall('SISMEMBER', KEYS[1] .. ':' .. recovery, KEYS[key]) ~= 1) then return true end
      end
      return false
    end
  end
end

-- A bucket in this call is a table:
--   key, log                its key, and its whole value
--   total, newestUs, newestPoints
--                           its header
--   counted, oldest         the points that count now, and the place in log of the oldest older entry that counts
--   lifeMs, windowUs, cost, limit
--                           of the settlement

-- Returns nil if the value cannot be read.
local function read(key, lifeMs, cost, limit)
  local log = pcall('GETRANGE', key, '0', '65535')
  local bucket = {
    key = key, log = '', total = 0, newestUs = 0, newestPoints = 0, counted = 0, oldest = HEADER_BYTES + 1,
    lifeMs = lifeMs, windowUs = lifeMs * 2000 / 3, cost = cost, limit = limit,
  }
  if log == '' then return bucket end
  if log.err or #log < HEADER_BYTES or (#log - HEADER_BYTES) % ENTRY_BYTES ~= 0 then return nil end
  bucket.log, bucket.total, bucket.newestUs, bucket.newestPoints = log, unpack(HEADER, log)
  local hasOlder = #log > HEADER_BYTES
  if bucket.newestPoints == 0 or bucket.total < bucket.newestPoints or hasOlder ~= (bucket.total > bucket.newestPoints) then
    return nil
  end
  local endUs = math.max(nowUs, bucket.newestUs) - bucket.windowUs
  if bucket.newestUs > endUs then
    bucket.counted = bucket.total
    while bucket.oldest <= #log do
      local atUs, points = unpack(ENTRY, log, bucket.oldest)
      if atUs > bucket.newestUs or points == 0 then return nil end
      if atUs > endUs then break end
      bucket.counted, bucket.oldest = bucket.counted - points, bucket.oldest + ENTRY_BYTES
    end
  end
  if bucket.counted < 0 then return nil end
  return bucket
end

-- Writes a bucket whole. Its key lives at least as long as it would have: another replica may count with a longer window.
local function write(bucket, older)
  local lifeMs = givenLifeMs
  if lifeMs == 0 then
    local leftMs = pcall('PTTL', bucket.key)
    lifeMs = bucket.lifeMs + math.ceil((bucket.newestUs - nowUs) / 1000)
    if type(leftMs) == 'number' and leftMs > lifeMs then lifeMs = leftMs end
    if lifeMs < 1 then lifeMs = 1 end
  end
  pcall('PSETEX', bucket.key, lifeMs, pack(HEADER, bucket.total, bucket.newestUs, bucket.newestPoints) .. older)
end

-- Removes points from the entry at this place; `entry` is 0 for the newest. An entry without points is removed: no charge leaves one.
local function remove(bucket, entry, points)
  bucket.total, bucket.counted = bucket.total - points, bucket.counted - points
  local log = bucket.log
  if entry == 0 then
    bucket.newestPoints = bucket.newestPoints - points
    if bucket.newestPoints > 0 then
      pcall('SETRANGE', bucket.key, '0', pack(HEADER, bucket.total, bucket.newestUs, bucket.newestPoints))
    elseif #log == HEADER_BYTES then
      -- PSETEX needs no further right.
      pcall('PSETEX', bucket.key, '1', '')
    else
      local last = #log - ENTRY_BYTES + 1
      bucket.newestUs, bucket.newestPoints = unpack(ENTRY, log, last)
      write(bucket, sub(log, HEADER_BYTES + 1, last - 1))
    end
  else
    local atUs, entryPoints = unpack(ENTRY, log, entry)
    if entryPoints > points then
      pcall('SETRANGE', bucket.key, entry - 1, pack(ENTRY, atUs, entryPoints - points))
      pcall('SETRANGE', bucket.key, '0', pack(HEADER, bucket.total, bucket.newestUs, bucket.newestPoints))
    else
      write(bucket, sub(log, HEADER_BYTES + 1, entry - 1) .. sub(log, entry + ENTRY_BYTES))
    end
  end
end

-- Returns the place of the first older entry that is not earlier than a time, or #log + 1.
local function first_from(log, timeUs)
  local low, high = 0, (#log - HEADER_BYTES) / ENTRY_BYTES
  while low < high do
    local middle = floor((low + high) / 2)
    if unpack('>I7', log, HEADER_BYTES + 1 + middle * ENTRY_BYTES) < timeUs then low = middle + 1 else high = middle end
  end
  return HEADER_BYTES + 1 + low * ENTRY_BYTES
end

-- Gives points of a charge that still counts back from the entry that has them: the first one that is not earlier than the charge. It is in
-- the same 1/100 of the window, and later than the charge only if it was joined. Otherwise Redis has lost the points, unless this is a
-- durable bucket whose counts are complete: then they may have been put back at a later time.
local function give_back(bucket, chargedUs, points, isComplete)
  local windowUs, log = bucket.windowUs, bucket.log
  -- Its entry may be dropped, and the first one that is not earlier be another.
  if chargedUs <= math.max(nowUs, bucket.newestUs) - windowUs then return end
  local slotUs = windowUs / SLOTS_PER_WINDOW
  local entry, atUs, entryPoints = first_from(log, chargedUs), bucket.newestUs, bucket.newestPoints
  if entry <= #log then atUs, entryPoints = unpack(ENTRY, log, entry) else entry = 0 end
  if atUs < chargedUs or entryPoints < (isComplete and points or bucket.cost) then return end
  if isComplete then
    if atUs > chargedUs + 2 * math.max(slotUs, US_PER_MINUTE) then return end
  elseif atUs > chargedUs then
    if atUs - atUs % slotUs ~= chargedUs - chargedUs % slotUs then return end
    if bucket.cost * ENTRIES_PER_LIMIT > bucket.limit then return end
  end
  remove(bucket, entry, points)
end

-- Gives points back whose time is unknown: the first ones that count, because all others count for longer. Entries that have no points
-- left are removed in one write.
local function give_back_oldest(bucket, points)
  points = math.min(points, bucket.counted)
  local log, first, entry, removed = bucket.log, bucket.oldest, bucket.oldest, 0
  while entry <= #log do
    local entryPoints = unpack('>I4', log, entry + 7)
    if removed + entryPoints > points then break end
    removed, entry = removed + entryPoints, entry + ENTRY_BYTES
  end
  if removed > 0 then
    bucket.total, bucket.counted = bucket.total - removed, bucket.counted - removed
    bucket.log = sub(log, 1, first - 1) .. sub(log, entry)
    write(bucket, sub(bucket.log, HEADER_BYTES + 1))
  end
  if points > removed then remove(bucket, first <= #bucket.log and first or 0, points - removed) end
end

-- Adds points as of now, above the limit if it must be. Returns how many are above it. Points above the limit join no charge, because a
-- later addition would move the entry, and no refund would find the charge. They open an entry, which all further points in 1/100 of the
-- window join while the bucket has no room.
local function add(bucket, points)
  points = math.min(points, MOST_POINTS - bucket.total)
  if points <= 0 then return 0 end
  local newestUs, newestPoints, limit = bucket.newestUs, bucket.newestPoints, bucket.limit
  local log, first = bucket.log, bucket.oldest
  local older = sub(log, HEADER_BYTES + 1)
  if first > HEADER_BYTES + MOST_EXPIRED * ENTRY_BYTES then
    -- No charge has dropped them for long. A longer window may still count them, so they become one entry, which has their last time.
    local lastUs = unpack('>I7', log, first - ENTRY_BYTES)
    older = pack(ENTRY, lastUs, bucket.total - bucket.counted) .. sub(log, first)
  end
  local isJoining = false
  if newestUs >= nowUs - nowUs % (bucket.windowUs / SLOTS_PER_WINDOW) then
    isJoining = bucket.counted > limit
      or newestUs >= nowUs and bucket.counted + points <= limit
      or (newestPoints + points) * ENTRIES_PER_LIMIT <= limit
  end
  bucket.total, bucket.counted = bucket.total + points, bucket.counted + points
  if newestPoints > 0 and isJoining then
    bucket.newestPoints = newestPoints + points
  else
    if newestPoints > 0 then older = older .. pack(ENTRY, newestUs, newestPoints) end
    bucket.newestPoints = points
  end
  bucket.newestUs = math.max(newestUs, nowUs)
  write(bucket, older)
  return math.max(0, math.min(points, bucket.counted - limit))
end

-- Settles a bucket of a period by `more` points, which may be negative. Returns its state for the reply.
local function settle_period(key, startUs, endUs, nextEndUs, more, limit, chargedUs)
  local value = pcall('GETRANGE', key, '0', '12')
  if value.err or value ~= '' and #value ~= COUNT_BYTES or nowUs < startUs or nowUs >= nextEndUs then return UNKNOWN end
  local total, atSeconds = 0, 0
  if value ~= '' then total, atSeconds = unpack(COUNT, value) end
  local atUs = atSeconds * US_PER_SECOND
  if total > LARGEST_NUMBER or atUs >= nextEndUs then return UNKNOWN end
  -- A clock that went back leaves the bucket in its period.
  if math.max(nowUs, atUs) >= endUs then startUs, endUs = endUs, nextEndUs end
  if atUs < startUs then total = 0 end
  local settled = total
  if more > 0 then
    settled = math.min(total + more, LARGEST_NUMBER)
    if atUs < nowUs then atUs = nowUs end
  elseif chargedUs == 0 then
    settled = math.max(0, total + more)
  elseif chargedUs >= startUs and total + more >= 0 then
    settled = total + more
  end
  if settled == 0 and total > 0 then
    pcall('PSETEX', key, '1', '')
  elseif settled ~= total then
    local lifeMs = givenLifeMs > 0 and givenLifeMs or math.ceil((endUs - nowUs + KEPT_US) / 1000)
    pcall('PSETEX', key, lifeMs, pack(COUNT, settled, floor(atUs / US_PER_SECOND)))
  end
  local over = math.max(0, math.min(settled - total, settled - limit))
  return pack(PERIOD_STATE, 1, settled < limit and limit - settled or 0, endUs - nowUs, over)
end

-- Whether now is in neither of the two periods of a bucket: the sender's clock differs.
local function is_moved(text)
  for start, length, nextLength in string.gmatch(text, SPAN) do
    local startUs = start * US_PER_SECOND
    if nowUs < startUs or nowUs >= startUs + (length + nextLength) * US_PER_SECOND then return true end
  end
  return false
end

-- Frees a slot that belongs to no replica. The lease stays, with one slot less.
local function free(key, chargedUs, heldMs)
  local value = pcall('GET', key) or ''
  if value.err then return end
  local grainUs = heldMs > HELD_SHORT_MS and HELD_LONG_END_US or HELD_END_US
  local id = string.format(HELD_ID, math.ceil((chargedUs + heldMs * 1000) / grainUs) * grainUs / US_PER_SECOND)
  for entry = 1, #value - LEASE_BYTES + 1, LEASE_BYTES do
    if sub(value, entry, entry + 15) == id then
      local _, generation, held, untilUs = unpack(LEASE, value, entry)
      if held > 0 then pcall('SETRANGE', key, entry - 1, pack(LEASE, id, generation, held - 1, untilUs)) end
      return
    end
  end
end

-- Why a settlement with this marker must not be applied, or nil.
local function settled_before(marker, nonce, isLate)
  local found = pcall('GETRANGE', marker, '0', MARKER_END)
  if nonce ~= '' and found == MARKED .. nonce then return REPEATED end
  if isLate then return not found.err and sub(found, 1, 1) == MARKED and ALREADY or ENDED end
  return found ~= '' and ALREADY or nil
end

local reply, replied, key = {}, 0, mark == '' and 1 or 2
for text = 2, #ARGV do
  local chargedUs, markedMs, endUs, nonce = string.match(ARGV[text], SETTLEMENT)
  local marker, outcome = KEYS[key], nil
  chargedUs, endUs, key = chargedUs + 0, endUs + 0, key + 1
  if is_missing and is_missing(ARGV[text], key) then
    outcome = MISSING
  else
    outcome = settled_before(marker, nonce, endUs > 0 and nowUs > endUs)
  end
  if not outcome and is_moved(ARGV[text]) then outcome = pack(MOVED, 4, nowUs / 1000) end
  if not outcome then
    outcome = SETTLED
    -- Not SET with NX, which is a further right for a user that may run single commands only.
    call('PSETEX', marker, markedMs + math.max(0, math.ceil((endUs - nowUs) / 1000)), MARKED .. nonce)
  end
  replied = replied + 1
  reply[replied] = outcome
  for lifeMs, cost, final, limit, sign in string.gmatch(ARGV[text], BUCKET) do
    local bucket = read(KEYS[key], lifeMs + 0, cost + 0, limit + 0)
    local more, over = final - cost, 0
    if bucket and outcome == SETTLED then
      if more > 0 then
        over = add(bucket, more)
      elseif more < 0 and chargedUs > 0 then
        give_back(bucket, chargedUs, -more, mark ~= '' and sign ~= '')
      elseif more < 0 then
        give_back_oldest(bucket, -more)
      end
    end
    key, replied = key + 1, replied + 1
    if bucket then
      local counted, limitPoints = bucket.counted, bucket.limit
      local resetUs = counted > 0 and bucket.newestUs + bucket.windowUs - nowUs or 0
      reply[replied] = pack(STATE, 1, counted < limitPoints and limitPoints - counted or 0, resetUs, over)
    else
      reply[replied] = UNKNOWN
    end
  end
  for start, length, nextLength, cost, final, limit in string.gmatch(ARGV[text], PERIOD) do
    local startUs = start * US_PER_SECOND
    local endUs = startUs + length * US_PER_SECOND
    local more = outcome == SETTLED and final - cost or 0
    key, replied = key + 1, replied + 1
    reply[replied] = settle_period(KEYS[key - 1], startUs, endUs, endUs + nextLength * US_PER_SECOND, more, limit + 0, chargedUs)
  end
  for heldMs in string.gmatch(ARGV[text], SLOT) do
    if outcome == SETTLED then free(KEYS[key], chargedUs, heldMs + 0) end
    key = key + 1
  end
end
return table.concat(reply)
