import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../test/fixtures/free-port.ts';
import { startNginx } from '../contestants/nginx.ts';
import { weir } from '../contestants/weir.ts';
import type { Bench } from '../lab/bench.ts';
import { costOf, median } from '../lab/turns.ts';
import { table } from '../report/section.ts';

const BYTES = 65_536;
const CONNECTIONS = 16;
/** What reading a cost may take of the CPU of a forwarded response. */
const AIM = 0.15;

const USAGE = { usage: { prompt_tokens: 1, total_tokens: 2 } };
const word = (index: number) => ({ id: index, delta: { content: `word ${index}` }, finish_reason: null });
const many = <T>(each: (index: number) => T): T[] => Array.from({ length: 1_000 }, (_, index) => each(index));

const IN_AN_ENVELOPE = 'in-an-envelope';

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
  { name: 'missing', text: padded((pad) => json({ data: many(word), pad })) },
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
  for (const { name: body } of BODIES) {
    bench.say(body);
    const measure = async ({ name }: { readonly name: string }, seconds = bench.seconds) => {
      const path = `/${name}/${body}`;
      const load = () => bench.strictLoad(gateway, { path, seconds, connections: CONNECTIONS });
      return Math.round((await costOf(gateway, load)).gatewayUs);
    };
    for (const kind of KINDS) await measure(kind, bench.either(3, 1));
    const seen = await bench.inTurn(KINDS, measure);
    const [plain = [], field = [], member = []] = KINDS.map(({ name }) => seen[name]);
    // Of neighbouring turns, because a busy machine changes its pace.
    const share = (part: (turn: number) => number) => median(plain.map((us, turn) => part(turn) / us));
    const reading = share((turn) => (member[turn] ?? 0) - (field[turn] ?? 0));
    if (reading > AIM) process.exitCode = 1;
    const settling = share((turn) => (member[turn] ?? 0) - (plain[turn] ?? 0));
    const medians = [plain, field, member].map((figures) => median(figures).toFixed(0));
    rows.push([body, ...medians, percent(reading), percent(AIM), percent(settling)]);
  }
  return [
    `Responses of 64 KiB on ${CONNECTIONS} connections, each charged to two buckets in Redis. CPU of the gateway in µs for a request: medians of ${bench.rounds} rounds in`,
    'turn, and of the shares of neighbouring ones. Reading is what a member takes more than a field that states the cost, as a share of the request',
    'that is not settled. The member is at the end of the first three bodies. Settling is all that the request takes more.',
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
  const headers = `root ${folder}/www; add_header X-Cost 2;`;
  bench.endWith(
    await startNginx({
      folder,
      port,
      cores: bench.cores?.load,
      http: '',
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

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}
