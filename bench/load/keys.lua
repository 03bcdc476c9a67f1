-- What wrk sends: requests of the accounts in turn, each with its own token. Arguments: accounts, path, bytes of the
-- body (0 for a GET, more for a POST), a file with a token of each account in its lines ('' for token-1 and so on), the account
-- before the first, and further fields as `name=value`.
-- Says what came of it as one line of JSON.

local requests = {}
local accounts = 0
local path = ''
local body = nil
local turn = 0
local tokens = {}
local tokensFile = ''
local nextToken = nil
local fields = {}

-- More than these are written when they are sent: LuaJIT's heap is small.
local MAX_READY = 10000

-- The token of an account. The tokens of more than MAX_READY accounts are read in turn.
local function token_of(account)
  if not nextToken then return tokens[account] or 'token-' .. account end
  local line = nextToken()
  if line then return line end
  nextToken = io.lines(tokensFile)
  return nextToken()
end

local function write(account)
  local all = {
    ['Host'] = wrk.headers['Host'],
    ['Authorization'] = 'Bearer ' .. token_of(account),
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
  tokensFile = args[4]
  turn = tonumber(args[5])
  if tokensFile ~= '' and accounts > MAX_READY then
    nextToken = io.lines(tokensFile)
    for _ = 1, turn do nextToken() end
  elseif tokensFile ~= '' then
    for line in io.lines(tokensFile) do tokens[#tokens + 1] = line end
  end
  for index = 6, #args do
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
