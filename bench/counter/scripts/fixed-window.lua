-- The script that people write first: INCRBY and a time to live, two keys, both or none.
-- KEYS: buckets. ARGV: window in ms, cost, and per bucket its limit. Reply: 1 admitted | 0 denied.
for i, key in ipairs(KEYS) do
  if tonumber(redis.call('GET', key) or '0') + tonumber(ARGV[2]) > tonumber(ARGV[2 + i]) then return 0 end
end
for _, key in ipairs(KEYS) do
  if redis.call('INCRBY', key, ARGV[2]) == tonumber(ARGV[2]) then redis.call('PEXPIRE', key, ARGV[1]) end
end
return 1
