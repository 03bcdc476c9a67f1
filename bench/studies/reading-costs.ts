import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../test/fixtures/free-port.ts';
import { startNginx } from '../contestants/nginx.ts';
import { weir } from '../contestants/weir.ts';
import type { Bench } from '../lab/bench.ts';
import { costOf, mean, moreOf, shownShare } from '../lab/turns.ts';
import { table } from '../report/section.ts';

const BYTES = 65_536;
const CONNECTIONS = 16;
/** What reading a cost may take of the CPU of a forwarded response. */
const AIM = 0.15;

const USAGE = { usage: { prompt_tokens: 1, total_tokens: 2 } };
const word = (index: number) => ({ id: index, delta: { content: `word ${index}` }, finish_reason: null });
const many = <T>(each: (index: number) => T): T[] => Array.from({ length: 1_000 }, (_, index) => each(index));

const IN_AN_ENVELOPE = 'in-an-envelope';
const MISSING = 'missing';

/** Bodies of 64 KiB. */
const BODIES = [
  { name: 'long-text', text: padded((pad) => json({ content: pad, ...USAGE })) },
  { name: 'small-objects', text: padded((pad) => json({ data: many(word), pad, ...USAGE })) },
  {
    name: 'events',
    text: padded((pad) => [...many(word), { pad }, USAGE].map((data) => `data: ${json(data)}\n\n`).join('')),
  },
  {
    name: 'at-the-beginning',
    text: padded((pad) => json({ ...USAGE, data: many(word), pad })),
  },
  {
    name: 'in-the-middle',
    text: padded((pad) =>
      json({ before: many(word).slice(500), ...USAGE, behind: many(word).slice(500), pad }),
    ),
  },
  {
    name: IN_AN_ENVELOPE,
    text: padded((pad) =>
      json({ data: { before: many(word).slice(500), ...USAGE, behind: many(word).slice(500), pad } }),
    ),
  },
  { name: MISSING, text: padded((pad) => json({ data: many(word), pad })) },
];

/** A field that states the cost is read without a look at the body: the rest of a settlement is the same. */
const KINDS = [
  { name: 'not-settled' },
  { name: 'by-a-field', settle: { header: 'x-cost' } },
  { name: 'by-a-member', settle: { json: '/usage/total_tokens' } },
];

/** What it costs to find what a response of 64 KiB has cost: one gateway, whose operations take turns. */
export async function measureReadingCosts(bench: Bench): Promise<readonly string[]> {
  const upstreamPort = await startBodies(bench);
  const list = KINDS.map(({ name, settle }) => ({ method: 'GET', path: `/${name}/{body}`, cost: 4, settle }));
  const envelope = { path: `/by-a-member/${IN_AN_ENVELOPE}`, settle: { json: '/data/usage/total_tokens' } };
  list.push({ method: 'GET', cost: 4, ...envelope });
  // Every charge is counted, even beside other work.
  const settings = { operations: { list, openapi: undefined }, store: { deadlineMs: 1_000 } };
  const gateway = await bench.start(weir('redis', { settings }), 'reading-costs', { upstreamPort });
  const rows: string[][] = [];
  for (const { name: body } of BODIES.filter(({ name }) => bench.includes(name))) {
    bench.say(body);
    const measure = async ({ name }: { readonly name: string }, seconds = bench.seconds) => {
      const path = `/${name}/${body}`;
      const load = () => bench.strictLoad(gateway, { path, seconds, connections: CONNECTIONS });
      return (await costOf(gateway, load)).gatewayUs;
    };
    for (const kind of KINDS) await measure(kind, bench.either(3, 1));
    const seen = await bench.inTurn(KINDS, measure);
    const [plain = [], field = [], member = []] = KINDS.map(({ name }) => seen[name]);
    const reading = moreOf(member, field, plain);
    if (reading.share > AIM) process.exitCode = 1;
    const settling = moreOf(member, plain);
    const means = [plain, field, member].map((figures) => mean(figures).toFixed(0));
    rows.push([body, ...means, shownShare(reading), `${AIM * 100} %`, shownShare(settling)]);
  }
  return [
    `Responses of 64 KiB on ${CONNECTIONS} connections, each charged to two buckets in Redis. CPU of the gateway in µs for a request: means of ${bench.rounds} rounds in`,
    'turn, with the standard error of each share. Reading is what a member takes more than a field that states the cost, as a share of the request',
    'that is not settled. The member is at the end of the first three bodies; for the last, the field is missing too. Settling is all that the request',
    'takes more.',
    '',
    ...table(
      ['body', 'not settled:', 'by a field:', 'by a member:', 'reading:', 'aim, at most:', 'settling:'],
      rows,
    ),
  ];
}

async function startBodies(bench: Bench): Promise<number> {
  const folder = join(bench.folder, 'bodies');
  for (const { name } of KINDS) mkdirSync(join(folder, 'www', name), { recursive: true });
  for (const { name: body, text } of BODIES)
    for (const { name } of KINDS) writeFileSync(join(folder, 'www', name, body), text);
  const port = await freePort();
  const headers = `root ${folder}/www; add_header X-Cost $cost;`;
  bench.endWith(
    await startNginx({
      folder,
      port,
      cores: bench.cores?.load,
      // A field without a value is not sent.
      http: `map $uri $cost { ~/${MISSING}$ ""; default 2; }`,
      server: `location ~ /events$ { ${headers} default_type text/event-stream; }`,
      location: `${headers} default_type application/json;`,
    }),
  );
  return port;
}

function json(value: object): string {
  return JSON.stringify(value);
}

/** The text with a padding that makes it as long as all are. */
function padded(textOf: (pad: string) => string): string {
  return textOf('x'.repeat(Math.max(0, BYTES - textOf('').length)));
}
