// flood <url> <token> <requests>: as fast as it can; prints how many got which status, and the first 429.
import { Agent, get } from 'node:http';

const [url, token, requests] = process.argv.slice(1);
const agent = new Agent({ keepAlive: true, maxSockets: 32 });
const statuses = {};
let first429;
let sent = 0;

const send = () =>
  new Promise((resolve, reject) => {
    get(url, { agent, headers: { authorization: `Bearer ${token}` } }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => {
        statuses[response.statusCode] = (statuses[response.statusCode] ?? 0) + 1;
        if (response.statusCode === 429) first429 ??= { headers: response.headers, text };
        resolve();
      });
    }).on('error', reject);
  });

await Promise.all(
  Array.from({ length: 32 }, async () => {
    while (sent++ < Number(requests)) await send();
  }),
);
console.log(JSON.stringify({ statuses, first429 }));
process.exit();
