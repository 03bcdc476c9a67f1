// follow <token> <path> <ip...>: asks each pod in turn and prints a line whenever the limit or the cost of a request has
// changed there: { ip, limit, cost }. The pods share one count and nobody else may send, so the cost of a request is
// what the remaining points have fallen by. Ends with its standard input.
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const [token, path, ...ips] = process.argv.slice(1);
const agent = new Agent({ keepAlive: true });
const known = new Map();
let remaining;

const ask = (ip) =>
  new Promise((resolve, reject) => {
    get(`http://${ip}:8080${path}`, { agent, headers: { authorization: `Bearer ${token}` } }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.headers));
    }).on('error', reject);
  });

process.stdin.once('end', () => process.exit()).resume();
for (let count = 0; ; count++) {
  await sleep(3);
  const ip = ips[count % ips.length];
  const headers = await ask(ip);
  const limit = Number(/"account-read";q=(\d+)/.exec(headers['ratelimit-policy'])?.[1]);
  const left = Number(/"account-read";r=(\d+)/.exec(headers.ratelimit)?.[1]) - limit;
  const cost = remaining === undefined ? undefined : remaining - left;
  remaining = left;
  const state = JSON.stringify({ ip, limit, cost });
  if (known.get(ip) !== state && cost !== undefined) {
    known.set(ip, state);
    console.log(state);
  }
}
