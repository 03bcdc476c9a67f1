-- mark: says that the durable counts of this Redis are complete. charge.lua spends no durable points where the mark is wrong.
--
-- KEYS[1]  the mark; in a Cluster, there is one in each slot
-- ARGV[1]  what to do
--            read    nothing
--            begin   takes a wrong mark for a recovery
--            end     sets the mark, if the recovery that took it has it still: Redis has lost nothing since
-- ARGV[2]  the name of the recovery
-- Reply    read: 1 if the mark is right | 0. begin: 1 if the recovery has taken it | 0 if it is right. end: 1 if it is right now | 0
-- Errors   Redis's own; then nothing was written
--
-- A right mark has the run_id of this Redis. So the data of another Redis, a snapshot or a replica that was promoted has a wrong one.

local info = redis.pcall('INFO', 'server')
-- A user who may not run INFO has a mark that only shows an empty Redis.
local run = not info.err and string.match(info, 'run_id:(%x+)') or '-'
local mark, taken = redis.pcall('GET', KEYS[1]), '* ' .. ARGV[2] .. ' ' .. run

if ARGV[1] == 'read' then return mark == run and 1 or 0 end
if ARGV[1] == 'begin' then
  if mark == run then return 0 end
  redis.call('SET', KEYS[1], taken)
  return 1
end
if mark == taken then
  redis.call('SET', KEYS[1], run)
  return 1
end
return mark == run and 1 or 0
