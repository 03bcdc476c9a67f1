-- What wrk sends: requests of the accounts in turn, each with its own token. Arguments: accounts, path, bytes of the
-- body (0 for a GET, more for a POST), a file with a token of each account in its lines ('' for token-1 and so on), and
-- further fields as `name=value`.
-- Says what came of it as one line of JSON.

local requests = {}
local accounts = 0
local path = ''
local body = nil
local turn = 0
local tokens = {}
local fields = {}

-- More than these are written when they are sent: LuaJIT's heap is small.
local MAX_READY = 10000

local function write(account)
  local all = {
    ['Host'] = wrk.headers['Host'],
    ['Authorization'] = 'Bearer ' .. (tokens[account] or 'token-' .. account),
    ['X-Service-Account'] = 'acct_' .. account,
    ['X-Organization'] = 'org_' .. math.ceil(account / 10),
  }
  for name, value in pairs(fields) do all[name] = value end
  return wrk.format(body and 'POST' or 'GET', path, all, body)
end

function init(args)
  accounts = tonumber(args[1])
  path = args[2]
  local bytes = tonumber(args[3])
  if bytes > 0 then body = string.rep('x', bytes) end
  if args[4] ~= '' then
    for line in io.lines(args[4]) do tokens[#tokens + 1] = line end
  end
  for index = 5, #args do
    local name, value = args[index]:match('^([^=]+)=(.*)$')
    fields[name] = value
  end
  if accounts > MAX_READY then return end
  for account = 1, accounts do requests[account] = write(account) end
end

function request()
  turn = turn % accounts + 1
  return requests[turn] or write(turn)
end

function done(summary, latency)
  local failed = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format('{"requests":%d,"us":%d,"refused":%d,"failed":%d,"p50Us":%d,"p99Us":%d}\n',
    summary.requests, summary.duration, summary.errors.status, failed,
    latency:percentile(50), latency:percentile(99)))
end
