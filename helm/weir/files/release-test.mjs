// `helm test`: sends real requests through the Service and asks every pod for the version of its limits. Prints one line
// per check; exits 1 if any failed.
import { createHash } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { readdirSync, readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { Agent as SecureAgent, get as getSecurely } from 'node:https';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

const { SERVICE_URL, METRICS_HOST, METRICS_PORT, METRICS_SCHEME } = process.env;
const { REQUEST_PATH, ACCOUNT, TOKEN, LIMITS_FILE, OVERRIDE_FOLDERS } = process.env;
const MOST_REQUESTS = Number(process.env.MOST_REQUESTS);
const AT_ONCE = 64;
const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
// The test is about limits, so the certificate may have the name that clients outside of the cluster use.
const secureAgent = new SecureAgent({ keepAlive: true, maxSockets: AT_ONCE, rejectUnauthorized: false });
let failures = 0;

function check(isMet, promise, saw) {
  if (!isMet) failures++;
  console.log(`${isMet ? 'ok    ' : 'FAILED'} ${promise}${isMet ? '' : `: saw ${saw}`}`);
}

function request(url, headers = {}) {
  return new Promise((resolve, reject) => {
    const isSecure = url.startsWith('https:');
    const options = { agent: isSecure ? secureAgent : agent, headers, timeout: 10_000 };
    const sent = (isSecure ? getSecurely : get)(url, options, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }));
    });
    sent.once('timeout', () => sent.destroy(new Error(`no answer from ${url}`)));
    sent.once('error', reject);
  });
}

const shown = ({ status, headers, text }) => `${status} ${JSON.stringify(headers)} ${text.slice(0, 300)}`;

async function checkAnonymous() {
  const answer = await request(SERVICE_URL + REQUEST_PATH);
  const isRefused = answer.status === 401 && String(answer.headers['content-type']).includes('problem+json');
  check(isRefused, 'a request without a token gets 401 and a problem body', shown(answer));
}

async function checkCounted(headers) {
  const answer = await request(SERVICE_URL + REQUEST_PATH, headers);
  const { ratelimit, 'ratelimit-policy': policy, 'service-ratelimit-mode': mode } = answer.headers;
  check(answer.status < 500 && ![401, 403].includes(answer.status), 'a request with the token passes the gateway', shown(answer));
  check(/^"[a-z-]+";q=\d+;w=\d+/.test(policy ?? ''), 'its answer has a RateLimit-Policy header', shown(answer));
  check(/^"[a-z-]+";r=\d+;t=\d+/.test(ratelimit ?? ''), 'its answer has a RateLimit header', shown(answer));
  check(mode === undefined, 'it was counted by the store (not degraded)', shown(answer));
  return Number(/;q=(\d+)/.exec(policy ?? '')?.[1]);
}

async function checkRefusal(headers, limit) {
  if (!(limit <= MOST_REQUESTS)) {
    console.log(`note   no 429 was tried: the limit is ${limit}, tests.maxRequests is ${MOST_REQUESTS}`);
    return;
  }
  let sent = 0;
  let refused;
  const client = async () => {
    while (refused === undefined && sent < MOST_REQUESTS) {
      sent++;
      const answer = await request(SERVICE_URL + REQUEST_PATH, headers);
      if (answer.status === 429) refused ??= answer;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
  const saw = refused === undefined ? `${sent} requests and no 429` : shown(refused);
  check(refused !== undefined, 'more requests than the limit allows get a 429', saw);
  if (refused === undefined) return;
  check(Number(refused.headers['retry-after']) >= 1, 'the 429 has Retry-After', saw);
  check(JSON.parse(refused.text).code === 'RateLimitExceeded', 'the 429 has a problem body', saw);
}

const sha256 = (text) => createHash('sha256').update(text).digest('hex');

/** As the metric weir_limits_info shows it. */
function versionOfMounted() {
  const folders = (OVERRIDE_FOLDERS ?? '').split(':').filter(Boolean);
  const overrides = folders.flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => /^[^.].*\.(ya?ml|json)$/.test(name))
      .sort()
      .map((name) => join(folder, name)),
  );
  const digests = [LIMITS_FILE, ...overrides].map((file) => sha256(readFileSync(file, 'utf8')));
  return sha256(digests.join('\n')).slice(0, 12);
}

async function versionsOfPods() {
  const found = await lookup(METRICS_HOST, { all: true });
  // With both families, each pod has an address of each.
  const ofIpv4 = found.filter(({ family }) => family === 4);
  const pods = ofIpv4.length > 0 ? ofIpv4 : found;
  const entries = pods.map(async ({ address, family }) => {
    const host = family === 6 ? `[${address}]` : address;
    const { text } = await request(`${METRICS_SCHEME ?? 'http'}://${host}:${METRICS_PORT ?? 9090}/metrics`);
    return `${address} ${/^weir_limits_info\{sha="(\w+)"\} 1$/m.exec(text)?.[1]}`;
  });
  return Promise.all(entries);
}

async function checkVersions() {
  if (METRICS_HOST === undefined) {
    console.log('note   the pods were not asked for their limits: metrics.service.enabled is false');
    return;
  }
  const wanted = versionOfMounted();
  let pods = [];
  for (let attempt = 0; attempt < 20; attempt++) {
    pods = await versionsOfPods();
    if (pods.every((pod) => pod.endsWith(` ${wanted}`))) break;
    await setTimeout(500);
  }
  const isSame = pods.length > 0 && pods.every((pod) => pod.endsWith(` ${wanted}`));
  check(isSame, `every pod (${pods.length}) has version ${wanted} of the limits in force`, pods.join(', '));
}

if (SERVICE_URL === undefined) {
  console.log('note   nothing was sent: decisions.only leaves no port for clients');
} else if (process.env.NEEDS_CERTIFICATE) {
  console.log('note   nothing was sent through the Service: tls.clientCa asks for a client certificate');
} else if (TOKEN === undefined) {
  await checkAnonymous();
  console.log('note   nothing was sent with a token: name a Secret with one in tests.existingSecret');
} else {
  await checkAnonymous();
  const headers = { authorization: `Bearer ${TOKEN.trim()}`, ...(ACCOUNT ? { 'x-service-account': ACCOUNT } : {}) };
  await checkRefusal(headers, await checkCounted(headers));
}
await checkVersions();
agent.destroy();
secureAgent.destroy();
process.exitCode = failures === 0 ? 0 : 1;
