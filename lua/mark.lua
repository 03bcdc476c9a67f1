-- mark: says that the durable counts of this Redis are complete. charge.lua spends no durable points where the mark is wrong.
--
-- KEYS[1]  the mark; in a Cluster, there is one in each slot
-- ARGV[1]  what to do
--            read    nothing
--            begin   takes a wrong mark for a recovery
--            take    takes any mark for a recovery
--            end     sets the mark, if the recovery that took it has it still: Redis has lost nothing since. Removes the set of
--                    the buckets that counted before
-- ARGV[2]  the name of the recovery
-- Reply    read: 1 if the mark is right | 0. begin, take: what a right mark has, if the recovery has taken it | 0 if the mark is right.
--          end: 1 if it is right now | 0
-- Errors   Redis's own; then nothing was written
--
-- A right mark has the replication id of this Redis. Redis chooses another one whenever it starts or is promoted. So the data of another
-- Redis, a snapshot, or data that went to another Redis and came back, has a wrong one.

local info = redis.pcall('INFO', 'replication')
-- A user who may not run INFO has a mark that only shows an empty Redis.
local id = not info.err and string.match(info, 'master_replid:(%x+)') or '-'
local mark, taken = redis.pcall('GET', KEYS[1]), '* ' .. ARGV[2] .. ' ' .. id

if ARGV[1] == 'read' then return mark == id and 1 or 0 end
if ARGV[1] == 'begin' or ARGV[1] == 'take' then
  if mark == id and ARGV[1] == 'begin' then return 0 end
  redis.call('SET', KEYS[1], taken)
  return id
end
if mark == taken then
  redis.call('SET', KEYS[1], id)
  redis.pcall('DEL', KEYS[1] .. ':' .. ARGV[2])
  return 1
end
return mark == id and 1 or 0
