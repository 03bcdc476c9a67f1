-- renew: reports that a replica is alive, so that the slots that it holds count, and states how many it holds of some buckets.
--
-- KEYS[1]  a sorted set: the replicas that are alive, by the end of their time in µs since 1970
-- KEYS     then the keys of slots whose leases are stated; all in one Cluster slot
-- ARGV[1]  the replica (16 bytes), how long it counts as alive in ms, and the life of a key of slots in ms; then a statement for each
--          key of slots, each after a comma: its generation, the slots that the replica holds, and the first byte of its lease as this
--          script last replied, 0 if it has not
-- Reply    a list: 1 if the replica counted as alive until now | 0: others may have dropped its leases, so it has to state all of them;
--          then for each key of slots the first byte of the replica's lease, counted from 1 | 0 if there is none
-- Errors   Redis's own
--
-- A lease that is still where it was is changed in place, and the others are not read, so a statement costs the same whatever the number
-- of replicas. README.md describes the format of a lease.

local LEASE, LEASE_BYTES = '>c16I6I4I7', 33
local NAME_BYTES, LEASE_CHANGE = 16, '>I6I4I7'

local replica, aliveMs, keyMs = string.match(ARGV[1], '^(%S+) (%d+) (%d+)')
local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local endUs = nowUs + aliveMs * 1000

-- An exact text: Lua writes a large number with 14 digits.
local function text_of(us)
  return string.format('%.0f', us)
end

local alive = KEYS[1]
-- A key of another type is replaced.
if type(redis.pcall('ZREMRANGEBYSCORE', alive, '-inf', text_of(nowUs))) == 'table' then redis.call('DEL', alive) end
-- If the clock went back, no replica counts for longer than its time.
for _, id in ipairs(redis.call('ZRANGEBYSCORE', alive, '(' .. text_of(endUs), '+inf')) do
  redis.call('ZADD', alive, text_of(endUs), id)
end
local isNew = redis.call('ZADD', alive, text_of(endUs), replica) == 1
redis.call('PEXPIRE', alive, keyMs)

-- Where the lease of the replica begins, or nil.
local function place_of(value)
  local from = 1
  while true do
    local place = string.find(value, replica, from, true)
    if not place or (place - 1) % LEASE_BYTES == 0 then return place end
    from = place + 1
  end
end

-- Slots of no replica, which begin with ~, may have given the key a longer life. A replica states each lease several times in this life.
local function keep(key)
  if redis.call('PTTL', key) < keyMs * 2 / 3 then redis.call('PEXPIRE', key, keyMs) end
end

-- Changes the lease at a place. The charges' connection may have stated this generation already, and changed it since.
local function change(key, place, lease, generation, held)
  if struct.unpack(LEASE_CHANGE, lease, NAME_BYTES + 1) >= generation then return end
  redis.call('SETRANGE', key, place - 1 + NAME_BYTES, struct.pack(LEASE_CHANGE, generation, held, endUs))
  keep(key)
end

-- Changes the lease of the replica wherever it is, and adds it if there is none. Returns its place.
local function find_and_change(key, generation, held)
  local value = redis.pcall('GET', key) or ''
  local isReplaced = value == '' or value.err or #value % LEASE_BYTES ~= 0
  local place = not isReplaced and place_of(value)
  if place then
    change(key, place, string.sub(value, place, place + LEASE_BYTES - 1), generation, held)
    return place
  end
  if held == 0 then return 0 end
  local own = struct.pack(LEASE, replica, generation, held, endUs)
  if isReplaced then
    redis.call('PSETEX', key, keyMs, own)
    return 1
  end
  redis.call('APPEND', key, own)
  keep(key)
  return #value + 1
end

local function state(key, generation, held, place)
  local lease = place > 0 and redis.pcall('GETRANGE', key, place - 1, place + LEASE_BYTES - 2)
  if type(lease) ~= 'string' or #lease < LEASE_BYTES or string.sub(lease, 1, NAME_BYTES) ~= replica then
    return find_and_change(key, generation, held)
  end
  change(key, place, lease, generation, held)
  return place
end

local reply = { isNew and 0 or 1 }
for generation, held, place in string.gmatch(ARGV[1], ',(%d+) (%d+) (%d+)') do
  local index = #reply + 1
  reply[index] = state(KEYS[index], generation + 0, held + 0, place + 0)
end
return reply
