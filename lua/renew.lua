-- renew: reports that a replica is alive, so that the slots that it holds count, and states how many it holds of some buckets.
--
-- KEYS[1]  a sorted set: the replicas that are alive, by the end of their time in µs since 1970
-- KEYS     then the keys of slots whose leases are stated; all in one Cluster slot
-- ARGV[1]  the replica (16 bytes), how long it counts as alive in ms, and the life of a key of slots in ms; then a statement for each
--          key of slots, each after a comma: its generation, and the slots that the replica holds
-- Reply    1 if the replica counted as alive until now | 0: others may have dropped its leases, so it has to state all of them
-- Errors   Redis's own
--
-- A statement is found by its replica's name and changed in place, so it costs the same whatever the number of replicas.
-- README.md describes the format of a lease.

local LEASE, LEASE_BYTES = '>c16I6I4I7', 33
local LEASE_CHANGE, LEASE_CHANGE_BYTES = '>I6I4I7', 17

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

-- The place of the replica's lease, or nil.
local function place_of(value)
  local from = 1
  while true do
    local place = string.find(value, replica, from, true)
    if not place or (place - 1) % LEASE_BYTES == 0 then return place end
    from = place + 1
  end
end

local function state(key, generation, held)
  local value = redis.pcall('GET', key) or ''
  local own = struct.pack(LEASE, replica, generation, held, endUs)
  if value == '' or value.err or #value % LEASE_BYTES ~= 0 then
    if held > 0 then redis.call('PSETEX', key, keyMs, own) end
    return
  end
  local place = place_of(value)
  if not place then
    if held > 0 then redis.call('APPEND', key, own) end
  else
    local change = place + LEASE_BYTES - LEASE_CHANGE_BYTES
    -- The charges' connection may have stated this generation already, and changed it since.
    if struct.unpack(LEASE_CHANGE, value, change) >= generation then return end
    redis.call('SETRANGE', key, change - 1, struct.pack(LEASE_CHANGE, generation, held, endUs))
  end
  -- Slots of no replica, which begin with ~, may need a longer life.
  if string.find(value, '~', 1, true) and redis.call('PTTL', key) > keyMs + 0 then return end
  redis.call('PEXPIRE', key, keyMs)
end

local index = 2
for generation, held in string.gmatch(ARGV[1], ',(%d+) (%d+)') do
  state(KEYS[index], generation + 0, held + 0)
  index = index + 1
end
return isNew and 0 or 1
