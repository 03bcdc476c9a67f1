-- The approximate sliding window: the count of this fixed window, and that of the last one by the share of it that the
-- sliding window still covers. Two keys, both or none.
-- KEYS: buckets. ARGV: window in ms, cost, and per bucket its limit. Reply: 1 admitted | 0 denied.
local windowMs, cost = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local current = math.floor(nowMs / windowMs)
local share = 1 - (nowMs - current * windowMs) / windowMs
for i, key in ipairs(KEYS) do
  local counts = redis.call('HMGET', key, current, current - 1)
  if tonumber(counts[1] or '0') + tonumber(counts[2] or '0') * share + cost > tonumber(ARGV[2 + i]) then return 0 end
end
for _, key in ipairs(KEYS) do
  if redis.call('HINCRBY', key, current, cost) == cost then redis.call('HDEL', key, current - 2) end
  redis.call('PEXPIRE', key, windowMs * 2)
end
return 1
