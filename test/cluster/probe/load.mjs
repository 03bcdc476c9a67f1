// load <url> <token> <rate/s> <seconds>: open loop, half of it on new connections. Prints a line when it has started, then one
// per second with what has happened so far; the last one is final. Ends after this time, or with its standard input.
import { Agent, get } from 'node:http';

const [url, token, rate, seconds] = process.argv.slice(1);
const keepAlive = new Agent({ keepAlive: true, maxSockets: 100 });
const statuses = {};
const failures = [];
const admittedMs = [];
const startedMs = performance.now();
let open = 0;
let sent = 0;

function failed(what, atMs) {
  failures.push(`${what} (sent at ${((atMs - startedMs) / 1000).toFixed(2)} s)`);
}

function send() {
  const atMs = performance.now();
  open++;
  sent++;
  const agent = sent % 2 === 0 ? keepAlive : false;
  const request = get(url, { agent, timeout: 10_000, headers: { authorization: `Bearer ${token}` } }, (response) => {
    const mode = response.headers['service-ratelimit-mode'];
    const status = `${response.statusCode}${mode === undefined ? '' : ` ${mode}`}`;
    statuses[status] = (statuses[status] ?? 0) + 1;
    if (status === '200') admittedMs.push([Math.floor(atMs), Math.ceil(performance.now())]);
    let text = '';
    response.setEncoding('utf8');
    response.on('data', (chunk) => {
      text += chunk;
    });
    response.once('close', () => {
      open--;
      if (response.statusCode >= 500 || !response.complete) failed(`${status} ${text}`, atMs);
    });
  });
  request.once('timeout', () => request.destroy(new Error('no answer for 10 s')));
  request.once('error', (error) => {
    open--;
    failed(`${error.code ?? error.message}${request.reusedSocket ? ', on a reused connection' : ''}`, atMs);
  });
}

function report(isFinal, written) {
  const some = { failures: failures.slice(0, 20), admittedMs: isFinal ? admittedMs : [] };
  process.stdout.write(`${JSON.stringify({ isFinal, sent, statuses, failed: failures.length, ...some })}\n`, written);
}

console.log(JSON.stringify({ started: true }));
const sending = setInterval(() => {
  const dueNow = ((performance.now() - startedMs) / 1000) * Number(rate);
  while (sent < dueNow) send();
  if (performance.now() - startedMs >= Number(seconds) * 1000) finish();
}, 5);
const reporting = setInterval(() => report(false), 1000);

function finish() {
  clearInterval(sending);
  clearInterval(reporting);
  const ending = setInterval(() => {
    if (open > 0) return;
    clearInterval(ending);
    // A pipe takes a long line in parts: exiting at once would cut it.
    report(true, () => process.exit());
  }, 20);
}

process.stdin.once('end', finish).resume();
