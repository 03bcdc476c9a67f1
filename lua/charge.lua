-- charge: spends points in every bucket of a decision, or in none. A call may have several decisions, which are made in order and
-- separately: a bucket that cannot be read affects only its own decision. If a key has a value that no release has written, the
-- first decision reports it and replaces it, and the next decision counts from zero.
--
-- KEYS     with a mark, its key first; then the buckets of every decision, in order, windows before periods; then the slots of every decision, then the slots of
--          further statements, then, if there are slots, the replicas that are alive (renew.lua); all in one Cluster slot
-- ARGV     texts of decimal numbers, separated by single spaces
-- ARGV[1]  the call: the mode alone if all else is 0 or left out, as in most calls; 1p for a charge with buckets of periods and all
--          else like this; otherwise four to six parts:
--            now       µs since 1970, for tests; 0 for Redis TIME
--            mode      1 to charge; 0 to peek, which makes the same decisions and writes nothing; 2 to charge, and to check how
--                      long the keys live: a key that a shorter window wrote is written again, even by a denial
--            life      of a written key in ms, for tests with a clock of their own; 0 for one and a half windows
--            slots     the number of KEYS that are slots, which limits on concurrent requests count
--            periods   1 if a decision has buckets of periods; left out otherwise. 0 before a mark
--            mark      what the mark has if the durable counts are complete: the replication id of this Redis, or ? if the caller
--                      does not know it. Left out without a journal
-- ARGV[2]  only if there are slots: the replica (16 bytes), the life of its leases in ms, and the life of a key of slots in ms; then
--          a statement for each slot, in the order of KEYS, each after a comma, three numbers:
--            generation  of the replica's statements
--            held        slots that the replica holds. Used only if the store has no lease of this generation
--            ended       slots that it has given back since its last statement of this generation. Used only if the store has
--                        a lease of this generation
--          A statement that belongs to no decision takes no slot.
-- ARGV     then a text per decision: per bucket three numbers, which are the life of its key in ms (one and a half windows), the
--          points to charge, and its limit in points; then per slot # and its limit. After a limit, ~ and a time in ms: the decision
--          takes a slot that belongs to no replica, until settle.lua frees it or this time is over. A negative limit is a shadow
--          limit, which counts charges below it and refuses nothing. If there are periods, a second text per decision follows it:
--          per bucket of a period five numbers, which are the start of a period in seconds since 1970, its length and the length of
--          the next one in seconds, the points, and the limit. In both texts, ! after the limit: the bucket is durable. While the mark
--          has anything else than it should, a decision with durable buckets fails, unless a recovery has put these back already
-- Reply    one string of big-endian integers; per decision
--            1 byte   1 admitted | 0 denied
--            and per bucket
--            4 bytes  remaining points
--            6 bytes  µs until the bucket is full again
--            6 bytes  µs until this cost fits; 0 if it fits now
--            and per bucket of a period
--            7 bytes  remaining points
--            6 bytes  µs until the period ends
--            6 bytes  µs until this cost fits; 0 if it fits now
--            and per slot
--            4 bytes  remaining slots
--            1 byte   1 if there was room | 0
--            2 bytes  only for a peek: the number of valid leases, which follow
--          If the buckets of a decision cannot be read, it has instead: 1 byte 2, a length of 2 bytes, and the error. This
--          includes PERIOD and the time in ms since 1970, if now is in neither of the two periods of a bucket, and RECOVERING,
--          if the decision has durable buckets whose counts are missing
--          After all decisions: 7 bytes, the time of the call, µs since 1970
-- Errors   Redis's own; then nothing was written
--
-- README.md describes the format of a bucket and of a lease, and why no window ever holds more than the limit.

local HEADER, HEADER_BYTES = '>I4I7I4', 15
local ENTRY, ENTRY_BYTES = '>I7I4', 11
local STATE, PROBLEM = '>I4I6I6', '>BI2c0'
-- A bucket of a period: its points, and the second of its last charge.
local COUNT, COUNT_BYTES, COUNT_STATE = '>I7I5', 12, '>I7I6I6'
local UNCHANGED, IN_PLACE, WHOLE, KEPT_US = 0, 1, 2, 900000000
local LEASE_BYTES = 33
-- The parts of a lease behind its replica, and where they begin.
local GENERATION_BYTES, GENERATION_START, SLOTS_AND_END, SLOTS_START = '>I6', 16, '>I4I7', 22
local GENERATION_AND_SLOTS, NO_SLOTS = '>I6I4', '\0\0\0\0'
-- A charge joins the newest entry if both are in the same 1/100 of the window and hold at most 1/250 of the limit.
local SLOTS_PER_WINDOW, ENTRIES_PER_LIMIT = 100, 250
-- That leaves at most 601 entries. If a limit is raised, older entries are joined as the new limit allows.
local MOST_ENTRIES = 601
-- A bucket's first read covers the header and the 16 oldest entries. Most decisions need no more, so their cost does not
-- grow with the bucket.
local FIRST_READ_BYTES, FIRST_READ_END = HEADER_BYTES + 16 * ENTRY_BYTES, '190'
-- A write changes the header and appends. A key is written whole to drop expired entries, eight or more at a time, and
-- to renew its life: once a quarter of a window, but at least once a minute, so that a key soon lives for a window that
-- was raised.
local FIRST_COMPACTED, RENEWALS_PER_WINDOW = 1 + HEADER_BYTES + 8 * ENTRY_BYTES, 4
local US_PER_SECOND, US_PER_MINUTE = 1000000, 60000000
-- A text of a decision is read one bucket, and one slot, at a time.
local BUCKET, SLOT, STATEMENT = '(%d+) (%d+) (%-?%d+)', '#(%-?%d+)~?(%d*)', ',(%d+) (%d+) (%d+)'
local PERIOD = '(%d+) (%d+) (%d+) (%d+) (%-?%d+)'
local DURABLE, DURABLE_PERIOD = '%d+ %d+ %-?%d+(!?)', '%d+ %d+ %d+ %d+ %-?%d+(!?)'
local NUMBERS_PER_BUCKET, NUMBERS_PER_PERIOD = 4, 5
-- Numbers are exact up to here: points, and µs up to the year 2255.
local LARGEST_NUMBER = 9007199254740992
-- No clock that is of use is ahead by as much: two years.
local LONGEST_AHEAD_US = 2 * 366 * 86400000000
-- A change in place gives the key its life again if the last one was in another part of this life.
local RENEWALS_PER_KEY = 6
local WRONG_VALUE = 'WRONGVALUE no release has written this value'

-- A bucket in this call is a list: a table with names takes Redis longer. Functions repeat the places that they use, because each
-- local of the script that a function refers to costs as much as a small table.
local KEY, LOG, IS_WHOLE = 1, 2, 3  -- its key, the part of its value that has been read, and whether that is the whole value
local OLDEST, TOTAL = 4, 5          -- the place in the log of the oldest entry that counts, and the points that count now
local EXPIRED = 6                   -- the points of the entries before it; the stored total has them until the value is written whole
local NEWEST_US, NEWEST_POINTS = 7, 8  -- its newest entry
local ADDED, IS_REWRITTEN = 9, 10   -- the older entry that this call appends, or '', and whether the value is written whole
local LIFE_MS, WINDOW_US = 11, 12   -- of the current decision; the life is a text, which Redis accepts unchanged
local COST, LIMIT = 13, 14          -- of the current decision
local MOST_MS, MOST_US = 15, 16     -- the longest requested life and window of a bucket that is written; '' and 0 for other buckets
-- The path of an admitted charge has no function, because a closure over a dozen locals costs as much as a GET, and the
-- whole script takes 8 µs. Arithmetic reads a number from a text in less than half the time that `tonumber` takes.

local KEYS, ARGV, call, pcall = KEYS, ARGV, redis.call, redis.pcall
local all_of = unpack
local pack, unpack, sub, gmatch = struct.pack, struct.unpack, string.sub, string.gmatch

-- Returns the whole value. If it does not consist of whole entries, returns only the header, whose total then shows that the value
-- is wrong. No release has written 64 KiB, which do not end with a whole entry.
local function whole_log(bucket)
  local KEY, LOG, IS_WHOLE = 1, 2, 3
  if not bucket[IS_WHOLE] then
    local log = redis.call('GETRANGE', bucket[KEY], '0', '65535')
    bucket[LOG], bucket[IS_WHOLE] = (#log - 15) % 11 == 0 and log or string.sub(log, 1, 15), true
  end
  return bucket[LOG]
end

-- For a bucket that was just read and has a time that only another clock or another window leaves. Returns whether its value is
-- consistent: its total is the sum of its entries, and no entry is later than the newest. If it is consistent and the clock went back
-- by more than a window, charges that still counted then count as charged now, for one more window.
local function rewind(bucket, nowUs, windowUs)
  local LOG, OLDEST, TOTAL, NEWEST_US, NEWEST_POINTS, IS_REWRITTEN = 2, 4, 5, 7, 8, 10
  local log, newestUs, points = whole_log(bucket), bucket[NEWEST_US], bucket[NEWEST_POINTS]
  local total, endUs = points, newestUs - windowUs
  for entry = 16, #log, 11 do
    local atUs, entryPoints = struct.unpack('>I7I4', log, entry)
    if atUs > newestUs then return false end
    if atUs > endUs then total = total + entryPoints end
    points = points + entryPoints
  end
  -- Times are exact up to 2^53 µs, in the year 2255. The first 7 bytes of a printable text are a later time.
  if points ~= bucket[TOTAL] or bucket[NEWEST_POINTS] == 0 or newestUs > 9007199254740992 then return false end
  if newestUs > nowUs + windowUs then
    bucket[LOG], bucket[OLDEST], bucket[TOTAL], bucket[NEWEST_US], bucket[NEWEST_POINTS] = '', 1, total, nowUs, total
    bucket[IS_REWRITTEN] = true
  end
  return true
end

-- Returns the time at which the last of the oldest `points` was charged.
local function charged_at(bucket, points)
  local LOG, OLDEST, NEWEST_US, ADDED = 2, 4, 7, 9
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

-- Returns the older entries, joined as if they had been charged at this limit.
local function join_entries(entries, limit, slotUs)
  local joined, count, lastUs, lastPoints = {}, 0, nil, nil
  for entry = 1, #entries, 11 do
    local atUs, points = struct.unpack('>I7I4', entries, entry)
    local isInSlot = lastUs and lastUs - lastUs % slotUs == atUs - atUs % slotUs
    if isInSlot and (lastPoints + points) * 250 <= limit then
      points = lastPoints + points
    else
      count = count + 1
    end
    joined[count], lastUs, lastPoints = struct.pack('>I7I4', atUs, points), atUs, points
  end
  return table.concat(joined)
end

-- A window gives a key between 1.25 and 1.5 windows from its newest charge. Returns -1 if the key has less than that (or
-- its life cannot be read), 1 if it has more, and 0 if it has as much as this window gives.
local function compare_life(bucket, nowUs)
  local KEY, NEWEST_US, WINDOW_US = 1, 7, 12
  local leftMs, windowMs = redis.pcall('PTTL', bucket[KEY]), bucket[WINDOW_US] / 1000
  local sinceMs = (nowUs - bucket[NEWEST_US]) / 1000
  if type(leftMs) ~= 'number' or leftMs + 1 < 1.25 * windowMs - sinceMs then return -1 end
  return leftMs > 1.5 * windowMs + math.max(0, -sinceMs) + 1 and 1 or 0
end

local nowUs, mode, givenLifeMs, slotCount, periodic, mark = 0, ARGV[1], '0', '0', '', ''
if mode == '1p' then
  mode, periodic = '1', '1'
elseif #mode > 1 then
  nowUs, mode, givenLifeMs, slotCount, periodic, mark = string.match(mode, '(%d+) (%d) (%d+) (%d+) ?(%d?) ?(%S*)')
end
local isSpending, isCheckingLives, hasSlots, hasPeriods = mode ~= '0', mode == '2', slotCount ~= '0', periodic == '1'
nowUs = nowUs + 0
if nowUs == 0 then
  local time = call('TIME')
  nowUs = time[1] * US_PER_SECOND + time[2]
end

-- Lists begin with the size that a decision of two buckets needs, so that they do not grow number by number.
local buckets, written, writes, reply, replied = {}, { nil, nil }, 0, { nil, nil, nil, nil }, 0
local slotLimits, heldTimes = hasSlots and {}, hasSlots and {}
local nextKey, firstText, isIncomplete, is_missing = 1, 2, false, nil
if mark ~= '' then
  if mark == '?' then
    local info = pcall('INFO', 'replication')
    -- A user who may not run INFO has a mark that only shows an empty Redis.
    mark = not info.err and string.match(info, 'master_replid:(%x+)') or '-'
  end
  local found = pcall('GET', KEYS[1])
  nextKey, isIncomplete = 2, found ~= mark
  if isIncomplete then
    -- During a recovery, the buckets that it has put back already are in a set beside the mark, in the same Cluster slot.
    local recovery, id = string.match(type(found) == 'string' and found or '', '^%* (%S+) (%S+)$')

    function is_missing(durable, text, firstKey)
      local key = firstKey - 1
      for sign in gmatch(text, durable) do
        key = key + 1
        if sign ~= '' and (id ~= mark or pcall('SISMEMBER', KEYS[1] .. ':' .. recovery, KEYS[key]) ~= 1) then return true end
      end
      return false
    end
  end
end

-- A key of slots in this call is a list, one of buckets as well. The first place has its key.
local VALUE = 2                     -- its leases
local TAKEN, IS_AGED = 3, 4         -- the slots of all others, and whether a replica of these may no longer be alive
local HELD, GENERATION = 5, 6       -- the slots that this replica holds, and the generation of its statement
local KNOWN, PLACE = 7, 8           -- the generation of its lease, or -1, and the place. Without a place, the value is written whole
local IS_SHORT, IS_WRITTEN = 9, 10  -- whether the key has to live longer, and whether it is written
local PREVIOUS = 11                 -- the list that was made before it
local lastSlots
local firstSlot, nextSlot, lastKeyOfSlots = 0, #KEYS + 1, #KEYS
local replica, leaseMs, keyMs, endUs, renewalUs, values, next_statement
-- The slots and the end of a lease as they are written, by the number of slots; and where they are written, by the place of the lease.
local changes, starts
local value_of, find_lease, read_slots, state, taken_by_the_living, leases_of_others, life_of, hold, start_of
if hasSlots then
  replica, leaseMs, keyMs = string.match(ARGV[2], '^(%S+) (%d+) (%d+)')
  endUs, renewalUs, firstText = nowUs + leaseMs * 1000, keyMs * 1000 / RENEWALS_PER_KEY, 3
  firstSlot, lastKeyOfSlots = #KEYS - slotCount, #KEYS - 1
  nextSlot, changes, starts = firstSlot, {}, { '22' }
  -- Returns the numbers of the statement for the next key of slots, as texts.
  next_statement = gmatch(ARGV[2], STATEMENT)
  -- One call for all. A key of another type is no error. If the user may not run MGET, each key is read separately.
  values = pcall('MGET', all_of(KEYS, firstSlot, lastKeyOfSlots))

  -- These functions use few locals of the script, because each one takes as long as an empty table.

  -- Returns the leases of a key, or nil and why they cannot be read.
  function value_of(index)
    local value = values[index - firstSlot + 1] or redis.pcall('GET', KEYS[index]) or ''
    if value.err then return nil, value.err end
    if #value % 33 ~= 0 then return nil, 'WRONGVALUE no release has written this value' end
    return value
  end

  -- Returns where to write the slots of a lease, as a text, because Redis takes long to write a number as one.
  function start_of(starts, place)
    local start = starts[place] or string.format('%.0f', place + 21)
    starts[place] = start
    return start
  end

  -- Returns the place of the replica's lease, or nil.
  function find_lease(value)
    local place = string.find(value, replica, 1, true)
    while place and place % 33 ~= 1 do place = string.find(value, replica, place + 1, true) end
    return place
  end

  -- Returns the list of a key, or nil if no release has written the value.
  function read_slots(key, value, place, nowUs, endUs, renewalUs, previous)
    local taken, held, known, isAhead, isShort, isAged = 0, 0, -1, false, false, false
    local unpack = struct.unpack
    for entry = 1, #value, 33 do
      local count, untilUs
      if entry == place then
        known, count, untilUs = unpack('>I6I4I7', value, entry + 16)
        held = count
        -- The key may have been given its life as early as then.
        isShort = untilUs - untilUs % renewalUs ~= endUs - endUs % renewalUs
      else
        count, untilUs = unpack('>I4I7', value, entry + 22)
        if count > 0 and count < 1048576 then
          taken = taken + count
          if untilUs <= nowUs then isAged = true end
        end
      end
      -- No replica holds as many slots of one bucket.
      if count >= 1048576 and untilUs > nowUs then return nil end
      -- No lease is valid for longer than its full life. Slots of no replica are in leases that begin with ~.
      if untilUs > endUs and (string.byte(value, entry) ~= 126 or untilUs > nowUs + 610000000) then isAhead = true end
    end
    return { key, value, taken, isAged, held, known, known, not isAhead and place, isShort, isAhead, previous }
  end

  -- Has a replica hold what it states, whatever its lease says. Returns false if Redis has a later generation.
  function state(slots, generation, stated, ended)
    local held = slots[HELD]
    if slots[GENERATION] > generation then return false end
    if slots[GENERATION] < generation then
      held, slots[GENERATION] = stated + 0, generation
    elseif ended ~= '0' then
      held = math.max(0, held - ended)
    end
    if slots[HELD] ~= held then slots[HELD], slots[IS_WRITTEN] = held, true end
    return true
  end

  -- The replicas that are alive, read when they are first needed.
  local living
  local function is_alive(id)
    if not living then
      living = {}
      local ids = redis.pcall('ZRANGEBYSCORE', KEYS[#KEYS], string.format('(%.0f', nowUs), '+inf')
      for index = 1, ids.err and 0 or #ids do living[ids[index]] = true end
    end
    return living[id]
  end

  -- Returns the slots that other replicas hold. A lease counts until its end, and for as long as its replica is alive.
  function taken_by_the_living(value)
    local taken = 0
    for entry = 1, #value, 33 do
      local id, _, count, untilUs = struct.unpack('>c16I6I4I7', value, entry)
      if id ~= replica and count < 1048576 and (untilUs > nowUs or is_alive(id)) then taken = taken + count end
    end
    return taken
  end

  -- Returns the leases of other replicas that count.
  function leases_of_others(value)
    local others = {}
    for entry = 1, #value, 33 do
      local id, generation, held, untilUs = struct.unpack('>c16I6I4I7', value, entry)
      if id ~= replica and held > 0 and held < 1048576 and (untilUs > nowUs or is_alive(id)) then
        local longestUs = string.byte(id) == 126 and nowUs + 610000000 or endUs
        others[#others + 1] = struct.pack('>c16I6I4I7', id, generation, held, math.min(untilUs, longestUs))
      end
    end
    return table.concat(others)
  end

  -- Returns the life of a key in ms: slots of no replica may need a longer one.
  function life_of(value, nowUs, leaseMs, keyMs)
    local lastUs = 0
    if not string.find(value, '~', 1, true) then return keyMs end
    for entry = 1, #value, 33 do
      local id, _, _, untilUs = struct.unpack('>c16I6I4I7', value, entry)
      if string.byte(id) == 126 and untilUs > lastUs then lastUs = untilUs end
    end
    return math.max(keyMs, math.ceil(math.min(610000000, lastUs - nowUs) / 1000 + leaseMs))
  end

  -- Returns leases with one more slot of no replica. Such slots that end at the same time share a lease, whose id is ~ and this time in
  -- seconds. Short ones end with a second, others with ten, so that there are few such leases.
  function hold(value, heldMs, nowUs)
    local grainUs = heldMs > 60000 and 10000000 or 1000000
    local untilUs = math.ceil((nowUs + heldMs * 1000) / grainUs) * grainUs
    local id = string.format('~%015.0f', untilUs / 1000000)
    for entry = 1, #value, 33 do
      if string.sub(value, entry, entry + 15) == id then
        local _, generation, held = struct.unpack('>c16I6I4', value, entry)
        local lease = struct.pack('>c16I6I4I7', id, generation, held + 1, untilUs)
        return string.sub(value, 1, entry - 1) .. lease .. string.sub(value, entry + 33)
      end
    end
    return value .. struct.pack('>c16I6I4I7', id, 0, 1, untilUs)
  end
end

-- A bucket of a period in this call is a list, one of buckets as well. The first place has its key.
local STORED, CHARGED_US = 2, 3    -- its points, and the time of its last charge. Whole seconds are stored: every period begins with one
local WRITTEN = 4                  -- whether it is written: UNCHANGED, in place, or whole, with a new life of its key
local COUNTED, PERIOD_END_US = 5, 6  -- of the current decision: the points that count, and the end of the period in which they do
local READ_BEFORE = 7              -- the list that was made before it
local lastCount
local textsPerDecision = hasPeriods and 2 or 1
-- The numbers in each text, parsed once for equal texts, if there are several decisions: of windows, and of periods.
local terms = firstText + textsPerDecision <= #ARGV and {}
local periodTerms = hasPeriods and terms and {}

for text = firstText, #ARGV, textsPerDecision do
  local asked = terms and terms[ARGV[text]]
  local lastKey, number = nextKey - 1, 1
  -- Without a text, it is a decision of periods alone.
  if ARGV[text] ~= '' then
    if not asked then
      local count = 0
      asked = { nil, nil, nil, nil, nil, nil, nil, nil }
      for lifeMs, cost, limit in gmatch(ARGV[text], BUCKET) do
        asked[count + 1], asked[count + 2], asked[count + 3], asked[count + 4] = lifeMs, lifeMs * 2000 / 3, cost + 0, limit + 0
        count = count + NUMBERS_PER_BUCKET
      end
      if terms then terms[ARGV[text]] = asked end
    end
    lastKey = lastKey + #asked / NUMBERS_PER_BUCKET
  end
  local admitted, problem = 1, nil
  if isIncomplete and (is_missing(DURABLE, ARGV[text], nextKey)
    or hasPeriods and is_missing(DURABLE_PERIOD, ARGV[text + 1], lastKey + 1)) then
    problem = 'RECOVERING the counts of the journal are missing'
  end

  -- Read every bucket as it is now, and decide whether all have room.
  for i = nextKey, problem and 0 or lastKey do
    local lifeMs, windowUs, cost, limit = asked[number], asked[number + 1], asked[number + 2], asked[number + 3]
    local key, isWritten, wrong = KEYS[i], false, nil
    local startUs = nowUs - windowUs
    local bucket = buckets[key]
    if bucket then
      bucket[LIFE_MS], bucket[WINDOW_US], bucket[COST], bucket[LIMIT] = lifeMs, windowUs, cost, limit
    else
      local value = pcall('GETRANGE', key, '0', FIRST_READ_END)
      if value == '' or value.err or #value < HEADER_BYTES or (#value - HEADER_BYTES) % ENTRY_BYTES ~= 0 then
        if value ~= '' then wrong = value.err or WRONG_VALUE end
        if value.err and sub(value.err, 1, 9) ~= 'WRONGTYPE' then
          problem = value.err
          break
        end
        bucket = { key, '', true, 1, 0, 0, 0, 0, '', true, lifeMs, windowUs, cost, limit, '', 0 }
      else
        local total, newestUs, newestPoints = unpack(HEADER, value)
        bucket = {
          key, value, #value < FIRST_READ_BYTES, 16, total, 0, newestUs, newestPoints, '', false,
          lifeMs, windowUs, cost, limit, '', 0,
        }
        if newestUs > nowUs + windowUs or newestUs < startUs - windowUs or newestPoints == 0 then
          if rewind(bucket, nowUs, windowUs) then isWritten = bucket[IS_REWRITTEN] else wrong = WRONG_VALUE end
        end
      end
      buckets[key] = bucket
    end
    local total, newestUs = bucket[TOTAL], bucket[NEWEST_US]
    if total > 0 and newestUs <= startUs then
      total = 0
      bucket[LOG], bucket[IS_WHOLE], bucket[OLDEST], bucket[TOTAL], bucket[EXPIRED] = '', true, 1, 0, 0
      bucket[NEWEST_POINTS], bucket[IS_REWRITTEN] = 0, true
    else
      local log, oldest, expired, expiredUs = bucket[LOG], bucket[OLDEST], 0, startUs
      -- The clock went back by less: it stands still for this bucket until it has caught up.
      if newestUs > nowUs then expiredUs = newestUs - windowUs end
      while true do
        if oldest > #log then log = whole_log(bucket) end
        if oldest > #log then
          if total - expired ~= bucket[NEWEST_POINTS] and bucket[ADDED] == '' then wrong = WRONG_VALUE end
          break
        end
        local atUs, points = unpack(ENTRY, log, oldest)
        if atUs > expiredUs then
          if atUs > newestUs or total - expired <= bucket[NEWEST_POINTS] then wrong = WRONG_VALUE end
          break
        end
        expired, oldest = expired + points, oldest + ENTRY_BYTES
      end
      if expired > 0 then
        total = total - expired
        bucket[TOTAL], bucket[EXPIRED], bucket[OLDEST] = total, bucket[EXPIRED] + expired, oldest
        if oldest >= FIRST_COMPACTED then bucket[IS_REWRITTEN] = true end
      end
    end
    if wrong then
      total, isWritten, problem = 0, true, problem or wrong
      bucket[LOG], bucket[IS_WHOLE], bucket[OLDEST], bucket[TOTAL], bucket[EXPIRED] = '', true, 1, 0, 0
      bucket[NEWEST_US], bucket[NEWEST_POINTS], bucket[ADDED], bucket[IS_REWRITTEN] = 0, 0, '', true
    elseif isCheckingLives and total > 0 then
      local life = compare_life(bucket, nowUs)
      if life ~= 0 then bucket[IS_REWRITTEN] = true end
      if life < 0 then isWritten = true end
    end
    if isWritten then
      if bucket[MOST_US] == 0 then
        writes = writes + 1
        written[writes] = bucket
      end
      if windowUs > bucket[MOST_US] then bucket[MOST_MS], bucket[MOST_US] = lifeMs, windowUs end
    end
    if limit > 0 and total + cost > limit then admitted = 0 end
    number = number + NUMBERS_PER_BUCKET
  end

  local periods, lastPeriod = nil, lastKey
  if hasPeriods then
    local periodText = ARGV[text + 1]
    periods = periodTerms and periodTerms[periodText]
    if not periods then
      local last = 0
      -- Of the size that one bucket takes.
      periods = { nil, nil, nil, nil, nil }
      for start, length, nextLength, cost, limit in gmatch(periodText, PERIOD) do
        local startUs = start * US_PER_SECOND
        -- The length of the next period stays a text, because it is rarely needed.
        periods[last + 1], periods[last + 2], periods[last + 3] = startUs, startUs + length * US_PER_SECOND, nextLength
        periods[last + 4], periods[last + 5] = cost + 0, limit + 0
        last = last + NUMBERS_PER_PERIOD
      end
      if periodTerms then periodTerms[periodText] = periods end
    end
    lastPeriod = lastKey + #periods / NUMBERS_PER_PERIOD
    number = 1
    for i = lastKey + 1, isIncomplete and problem and 0 or lastPeriod do
      local key, startUs, endUs, limit = KEYS[i], periods[number], periods[number + 1], periods[number + 4]
      if nowUs < startUs or nowUs >= endUs and nowUs >= endUs + periods[number + 2] * US_PER_SECOND then
        problem = problem or string.format('PERIOD %.0f', nowUs / 1000)
        break
      end
      local count = buckets[key]
      if not count then
        local value = pcall('GETRANGE', key, '0', '12')
        local stored, atUs, written = 0, 0, UNCHANGED
        if value ~= '' then
          local wrong = value.err
          if wrong and sub(wrong, 1, 9) ~= 'WRONGTYPE' then
            problem = wrong
            break
          end
          if not wrong and #value == COUNT_BYTES then
            local points, atSeconds = unpack(COUNT, value)
            stored, atUs = points, atSeconds * US_PER_SECOND
          end
          if stored == 0 or stored > LARGEST_NUMBER or atUs > nowUs + LONGEST_AHEAD_US then
            problem = problem or wrong or WRONG_VALUE
            stored, atUs, written = 0, 0, WHOLE
          end
        end
        count = { key, stored, atUs, written, 0, 0, lastCount }
        buckets[key], lastCount = count, count
      end
      local atUs = count[CHARGED_US]
      if nowUs >= endUs or atUs >= endUs then
        local nextEndUs = endUs + periods[number + 2] * US_PER_SECOND
        if nowUs >= endUs then startUs, endUs = endUs, nextEndUs end
        if atUs >= nextEndUs then
          -- The clock went back by more than to the period before: what counted then counts as charged now.
          atUs = nowUs
          count[CHARGED_US], count[WRITTEN] = nowUs, WHOLE
        elseif atUs >= endUs then
          -- The clock went back to the period before: the bucket stays in its period until the clock has caught up.
          startUs, endUs = endUs, nextEndUs
        end
      end
      -- Points count if the last of them was charged since the period began: after a change of its start, they may all have been.
      local total = atUs < startUs and 0 or count[STORED]
      count[COUNTED], count[PERIOD_END_US] = total, endUs
      if limit > 0 and total + periods[number + 3] > limit then admitted = 0 end
      number = number + NUMBERS_PER_PERIOD
    end
  end

  local limits, lastSlot
  if hasSlots then
    limits = slotLimits[ARGV[text]]
    if not limits then
      limits = {}
      for limit, heldMs in gmatch(ARGV[text], SLOT) do
        limits[#limits + 1] = limit + 0
        if heldMs ~= '' then heldTimes[ARGV[text]] = heldMs + 0 end
      end
      slotLimits[ARGV[text]] = limits
    end
    lastSlot = nextSlot + #limits - 1
    local isLeft = problem ~= nil
    for i = nextSlot, lastSlot do
      local key, limit = KEYS[i], limits[i - nextSlot + 1]
      local generation, stated, ended = next_statement()
      local slots = buckets[key]
      if not isLeft and not slots then
        local value, wrong = value_of(i)
        slots = value and read_slots(key, value, find_lease(value), nowUs, endUs, renewalUs, lastSlots)
        if not slots then
          problem = wrong or WRONG_VALUE
          isLeft = problem ~= WRONG_VALUE and sub(problem, 1, 9) ~= 'WRONGTYPE'
          slots = { key, '', 0, false, 0, -1, -1, false, false, true, lastSlots }
        end
        if not isLeft then buckets[key], lastSlots = slots, slots end
      end
      if not isLeft and not state(slots, generation + 0, stated, ended) and isSpending then
        problem, isLeft = 'STALE the replica has stated its slots anew', true
      end
      if not isLeft then
        local taken, held = slots[TAKEN], slots[HELD]
        if slots[IS_AGED] and (not isSpending or taken + held >= math.abs(limit)) then
          taken = taken_by_the_living(slots[VALUE])
          -- Written whole, the value has no leases of the dead.
          if taken < slots[TAKEN] then slots[TAKEN], slots[PLACE], slots[IS_WRITTEN] = taken, false, true end
          slots[IS_AGED] = false
        end
        if limit > 0 and taken + held >= limit then admitted = 0 end
      end
    end
  end

  -- Spend and reply.
  replied = replied + 1
  if problem then
    reply[replied] = pack(PROBLEM, 2, #problem, problem)
  else
    reply[replied] = admitted == 1 and '\1' or '\0'
  end
  for i = nextKey, problem and 0 or lastKey do
    local bucket = buckets[KEYS[i]]
    local total, cost, limit, windowUs = bucket[TOTAL], bucket[COST], bucket[LIMIT], bucket[WINDOW_US]
    local isWritten, startUs, retryAfterUs = false, nowUs - windowUs, 0
    if limit < 0 then limit = -limit end
    if total + cost > limit then
      retryAfterUs = windowUs
      if cost <= limit then
        retryAfterUs = charged_at(bucket, total + cost - limit) - startUs
        -- Entries that no release has written may have any time.
        local longestUs = bucket[NEWEST_US] - startUs
        if retryAfterUs < 0 or retryAfterUs > longestUs then retryAfterUs = longestUs end
      end
    elseif admitted == 1 then
      isWritten = isSpending
    end
    if isWritten then
      local newestUs, newestPoints = bucket[NEWEST_US], bucket[NEWEST_POINTS]
      if newestPoints > 0
        and (newestUs >= nowUs or (newestPoints + cost) * ENTRIES_PER_LIMIT <= limit
          and newestUs >= nowUs - nowUs % (windowUs / SLOTS_PER_WINDOW)) then
        bucket[NEWEST_POINTS] = newestPoints + cost
      else
        if newestPoints > 0 then
          local renewalUs = windowUs / RENEWALS_PER_WINDOW
          if renewalUs > US_PER_MINUTE then renewalUs = US_PER_MINUTE end
          bucket[ADDED] = pack(ENTRY, newestUs, newestPoints)
          if newestUs < nowUs - nowUs % renewalUs then bucket[IS_REWRITTEN] = true end
        end
        bucket[NEWEST_POINTS] = cost
      end
      total = total + cost
      bucket[TOTAL] = total
      if newestUs < nowUs then bucket[NEWEST_US] = nowUs end
    elseif windowUs > US_PER_MINUTE and isSpending and total > 0 and compare_life(bucket, nowUs) < 0 then
      -- No later charge may come to renew the life of this key before it expires.
      isWritten, bucket[IS_REWRITTEN] = true, true
    end
    if isWritten then
      if bucket[MOST_US] == 0 then
        writes = writes + 1
        written[writes] = bucket
      end
      if windowUs > bucket[MOST_US] then bucket[MOST_MS], bucket[MOST_US] = bucket[LIFE_MS], windowUs end
    end
    replied = replied + 1
    reply[replied] =
      pack(STATE, total < limit and limit - total or 0, total > 0 and bucket[NEWEST_US] - startUs or 0, retryAfterUs)
  end
  number = 1
  for i = lastKey + 1, problem and 0 or lastPeriod do
    local count, cost, limit = buckets[KEYS[i]], periods[number + 3], periods[number + 4]
    local total, leftUs = count[COUNTED], count[PERIOD_END_US] - nowUs
    number = number + NUMBERS_PER_PERIOD
    if limit < 0 then limit = -limit end
    local hasRoom = total + cost <= limit
    if hasRoom and admitted == 1 and isSpending then
      -- Whole once a minute, so that a key soon lives for a period whose start has changed.
      if total == 0 or count[CHARGED_US] < nowUs - nowUs % US_PER_MINUTE then
        count[WRITTEN] = WHOLE
      elseif count[WRITTEN] == UNCHANGED then
        count[WRITTEN] = IN_PLACE
      end
      if count[CHARGED_US] < nowUs then count[CHARGED_US] = nowUs end
      total = total + cost
      count[STORED] = total
    elseif isSpending and not hasRoom and total > 0 and count[WRITTEN] == UNCHANGED then
      -- No later charge may come to renew the life of this key.
      local lifeMs = pcall('PTTL', KEYS[i])
      if type(lifeMs) ~= 'number' or lifeMs * 1000 < leftUs then count[WRITTEN] = WHOLE end
    end
    replied = replied + 1
    reply[replied] = pack(COUNT_STATE, total < limit and limit - total or 0, leftUs, hasRoom and 0 or leftUs)
  end
  nextKey = lastPeriod + 1
  if hasSlots then
    for i = nextSlot, problem and 0 or lastSlot do
      local slots, limit = buckets[KEYS[i]], limits[i - nextSlot + 1]
      if limit < 0 then limit = -limit end
      local free = limit - slots[TAKEN] - slots[HELD]
      local hasRoom = free > 0
      if hasRoom and admitted == 1 and isSpending then
        local heldMs = heldTimes[ARGV[text]]
        if heldMs then
          slots[VALUE], slots[PLACE], slots[TAKEN] = hold(slots[VALUE], heldMs, nowUs), false, slots[TAKEN] + 1
        else
          slots[HELD] = slots[HELD] + 1
        end
        slots[IS_WRITTEN], free = true, free - 1
      end
      replied = replied + 1
      reply[replied] = pack('>I4B', free > 0 and free or 0, hasRoom and 1 or 0)
      if not isSpending then
        local others = leases_of_others(slots[VALUE])
        reply[replied] = reply[replied] .. pack('>I2', #others / LEASE_BYTES) .. others
      end
    end
    nextSlot = lastSlot + 1
  end
end

-- Write, only after every bucket of every decision has been read.
for i = 1, isSpending and writes or 0 do
  local bucket = written[i]
  if bucket[ADDED] ~= '' and not bucket[IS_REWRITTEN] then
    local olderBytes = call('APPEND', bucket[KEY], bucket[ADDED]) + 1 - bucket[OLDEST]
    if olderBytes >= MOST_ENTRIES * ENTRY_BYTES then
      bucket[ADDED], bucket[IS_WHOLE], bucket[IS_REWRITTEN] = '', false, true
    end
  end
  if bucket[NEWEST_POINTS] == 0 then
    -- A wrong value that no later decision of this call has replaced. PSETEX works with every type, and needs no further right.
    call('PSETEX', bucket[KEY], '1', '')
  elseif bucket[IS_REWRITTEN] then
    local lifeMs, newestUs = givenLifeMs, bucket[NEWEST_US]
    if lifeMs == '0' then
      lifeMs = bucket[MOST_MS]
      if newestUs ~= nowUs then lifeMs = lifeMs + math.ceil((newestUs - nowUs) / 1000) end
    end
    local older = sub(whole_log(bucket), bucket[OLDEST]) .. bucket[ADDED]
    if #older >= MOST_ENTRIES * ENTRY_BYTES then
      older = join_entries(older, math.abs(bucket[LIMIT]), bucket[WINDOW_US] / SLOTS_PER_WINDOW)
    end
    call('PSETEX', bucket[KEY], lifeMs, pack(HEADER, bucket[TOTAL], newestUs, bucket[NEWEST_POINTS]) .. older)
  else
    call('SETRANGE', bucket[KEY], '0', pack(HEADER, bucket[TOTAL] + bucket[EXPIRED], bucket[NEWEST_US], bucket[NEWEST_POINTS]))
  end
end
local count = isSpending and lastCount
while count do
  if count[WRITTEN] == UNCHANGED then
    -- Nothing was charged to it.
  elseif count[STORED] == 0 then
    -- A wrong value that no later decision of this call has replaced.
    call('PSETEX', count[KEY], '1', '')
  else
    local value = pack(COUNT, count[STORED], (count[CHARGED_US] - count[CHARGED_US] % US_PER_SECOND) / US_PER_SECOND)
    if count[WRITTEN] == IN_PLACE then
      call('SETRANGE', count[KEY], '0', value)
    else
      local lifeMs = givenLifeMs
      -- After the end of its period, a key only matters to a clock that goes back.
      if lifeMs == '0' then lifeMs = math.ceil((count[PERIOD_END_US] - nowUs + KEPT_US) / 1000) end
      call('PSETEX', count[KEY], lifeMs, value)
    end
  end
  count = count[READ_BEFORE]
end
-- Statements that belong to no decision.
for i = nextSlot, lastKeyOfSlots do
  local key, generation, stated, ended = KEYS[i], next_statement()
  local slots = buckets[key]
  local value = not slots and value_of(i)
  local place = value and find_lease(value)
  local known, held = -1, 0
  if place then known, held = unpack(GENERATION_AND_SLOTS, value, place + GENERATION_START) end
  if known == generation + 0 and held <= ended + 0 then
    -- Without slots, neither the lease nor the key has to live longer.
    if held > 0 then call('SETRANGE', key, start_of(starts, place), NO_SLOTS) end
  else
    local isRead = slots ~= nil
    slots = slots or value and read_slots(key, value, place, nowUs, endUs, renewalUs, lastSlots)
    if slots and state(slots, generation + 0, stated, ended) then
      slots[IS_WRITTEN] = true
      if not isRead then lastSlots = slots end
    end
  end
end
while lastSlots and isSpending do
  if lastSlots[IS_WRITTEN] then
    local key, held, place, change = lastSlots[KEY], lastSlots[HELD], lastSlots[PLACE], nil
    change = changes[held]
    if not change then
      change = pack(SLOTS_AND_END, held, endUs)
      changes[held] = change
    end
    local isRestated = lastSlots[GENERATION] ~= lastSlots[KNOWN]
    if isRestated or not place then change = pack(GENERATION_BYTES, lastSlots[GENERATION]) .. change end
    if place then
      local start = isRestated and (place == 1 and '16' or place + 15) or start_of(starts, place)
      call('SETRANGE', key, start, change)
      if lastSlots[IS_SHORT] then call('PEXPIRE', key, life_of(lastSlots[VALUE], nowUs, leaseMs, keyMs)) end
    else
      local value = lastSlots[VALUE]
      local others = value ~= '' and leases_of_others(value) or ''
      call('PSETEX', key, life_of(value, nowUs, leaseMs, keyMs), others .. replica .. change)
    end
  end
  lastSlots = lastSlots[PREVIOUS]
end
reply[replied + 1] = pack('>I7', nowUs)
return table.concat(reply)
