-- What wrk sends: requests of the accounts in turn, each with its own token. Arguments: accounts, path, bytes of the
-- body (0 for a GET, more for a POST).
-- Says what came of it as one line of JSON.

local requests = {}
local accounts = 0
local path = ''
local body = nil
local turn = 0

-- More than these are written when they are sent: LuaJIT's heap is small.
local MAX_READY = 10000

local function write(account)
  return wrk.format(body and 'POST' or 'GET', path, {
    ['Host'] = wrk.headers['Host'],
    ['Authorization'] = 'Bearer token-' .. account,
    ['X-Service-Account'] = 'acct_' .. account,
    ['X-Organization'] = 'org_' .. math.ceil(account / 10),
  }, body)
end

function init(args)
  accounts = tonumber(args[1])
  path = args[2]
  local bytes = tonumber(args[3])
  if bytes > 0 then body = string.rep('x', bytes) end
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
