/** What k6 runs: the scenario of the table that SCRIPT names. */
import { check, sleep } from 'k6';
import exec from 'k6/execution';
import http from 'k6/http';
import { Trend } from 'k6/metrics';
import type { Options, Scenario } from 'k6/options';
import { ACCOUNTS, degraded, header, LIMIT, SECONDS, type Sent, send } from './gateway.ts';

const UPSTREAM = __ENV.UPSTREAM ?? 'http://127.0.0.1:3000';
/** Points per second and Organization, as the gateway was configured. */
const ORGANIZATION_LIMIT = Number(__ENV.ORGANIZATION_LIMIT ?? 4 * LIMIT);
/** By then the gateway must have found Redis again: it probes once a second at most. */
const BACK = 0.8;
/** By then the gateway's code has been compiled. */
const WARM = 0.5;

const WRITES = [
  { path: '/v3/payments/payables/payable_1/open', cost: 1 },
  { path: '/v3/compliance/tax-forms/form_1/submit', cost: 5 },
  { path: '/v3/platform/sessions', cost: 10 },
];
const MEAN_COST = 16 / 3;

/** A number of the iterations of the whole run, from 0 on. */
const turn = () => exec.scenario.iterationInTest;
/** An Account after the other, the first `count` ones. */
const inTurn = (count: number) => send({ account: (turn() % count) + 1 });

/**
 * In each round of ten requests, some are above a limit: two of one Account, two of ten Accounts of one Organization together, and one of an
 * Account whose answers take long. The others are of quiet Accounts, all in turn, one of them with a cost that is settled.
 */
const FIRST_QUIET_ACCOUNT = 101;
const [HOT_ACCOUNT, SLOW_ACCOUNT] = [91, 71];
const FIRST_OF_HOT_ORGANIZATION = 81;

function soakRequest(): Sent {
  const [place, round] = [turn() % 10, Math.floor(turn() / 10)];
  if (place < 2) return { account: HOT_ACCOUNT };
  if (place < 4) return { account: FIRST_OF_HOT_ORGANIZATION + ((2 * round + place) % 10) };
  if (place === 4) return { account: SLOW_ACCOUNT, path: '/v3/soak/slow' };
  const quiet = (round * 5 + place - 5) % (ACCOUNTS - FIRST_QUIET_ACCOUNT + 1);
  const request = { account: FIRST_QUIET_ACCOUNT + quiet };
  return place === 5 ? { ...request, path: '/v3/soak/cost', cost: 2 } : request;
}

interface Script {
  readonly scenario: Scenario;
  /** Besides `KEPT`, or replacing parts of it. */
  readonly thresholds?: Options['thresholds'];
  readonly run: () => void;
}

/** Each check holds. */
const KEPT = { checks: ['rate==1'] };
const REFUSES = { refused: ['count>0'] };

/** A constant rate in requests per second, with clients for it. On a busy machine, k6 may leave out a part of them. */
function steadily(rate: number, maxVUs: number, preAllocatedVUs = maxVUs / 2): Scenario {
  const duration = `${SECONDS}s`;
  return { executor: 'constant-arrival-rate', rate, duration, preAllocatedVUs, maxVUs };
}

/** How long the same request takes at the upstream directly and through Weir, in ms, one after the other. The runner compares them. */
const straight = new Trend('straight_ms');
const through = new Trend('through_ms');

const VUS = Number(__ENV.VUS ?? 100);
const TARGETS = (__ENV.TARGETS ?? '').split(',');

/** k6's code of an error. */
const REFUSED_CONNECTION = 1212;

/** k6 has no client for server-sent events of its own: it reads the stream until it ends. */
function stream(): void {
  const reserved = 100 + Math.floor(Math.random() * 3_901);
  const cost = Math.floor(Math.random() * (reserved + 1));
  const account = 1 + Math.floor(Math.random() * ACCOUNTS);
  const asked = { model: 'fake', messages: [{ role: 'user', content: 'Hello' }], stream: true };
  const options = { max_completion_tokens: reserved, stream_options: { include_usage: true } };
  const body = { ...asked, ...options, account: `acct_${account}`, final_cost: cost, sent_ms: Date.now() };
  const target = TARGETS[Math.floor(Math.random() * TARGETS.length)];
  const response = http.post(`${target}/v1/chat/completions`, JSON.stringify(body), {
    headers: { Authorization: `Bearer token-${account}`, 'Content-Type': 'application/json' },
    responseType: 'text',
    timeout: '60s',
  });
  if (response.status === 200)
    check(response, {
      'ends with its usage': ({ body: text }) => `${text}`.includes(`"total_tokens":${cost}`),
    });
  else {
    // A replica that is not there has charged nothing.
    if (response.status === 0 && response.error_code !== REFUSED_CONNECTION)
      console.log(`unanswered ${JSON.stringify(body)}`);
    sleep(0.5 + Math.random());
  }
}

const STEP = `${Math.ceil(SECONDS / 6)}s`;

const SCRIPTS: Readonly<Record<string, Script>> = {
  /** A constant rate well below every limit, in turn with the upstream alone: nothing is refused, nothing is late. */
  steady: {
    scenario: steadily(250, 600),
    thresholds: { refused: ['count==0'], http_req_failed: ['rate==0'] },
    run() {
      const alone = http.get(`${UPSTREAM}/v3/payments/payees`);
      const answer = inTurn(ACCOUNTS);
      if (exec.scenario.progress < WARM) return;
      straight.add(alone.timings.duration);
      through.add(answer.timings.duration);
    },
  },
  /** Rates that rise and fall faster than windows slide, partly above the limit. */
  burst: {
    scenario: {
      executor: 'ramping-arrival-rate',
      startRate: 50,
      preAllocatedVUs: 300,
      maxVUs: 600,
      stages: [
        { target: 50, duration: STEP },
        { target: 1000, duration: '1s' },
        { target: 1000, duration: STEP },
        { target: 50, duration: '1s' },
        { target: 50, duration: STEP },
        { target: 1000, duration: STEP },
      ],
    },
    run: () => inTurn(ACCOUNTS),
  },
  /** One Account at ten times its limit: 429s at once, and never a point too many. */
  flood: { scenario: steadily(10 * LIMIT, 600), thresholds: REFUSES, run: () => send({ account: 1 }) },
  /** Ten Accounts of one Organization, each within its own limit, all together at twice the Organization's. */
  'hot-org': {
    scenario: steadily(2 * ORGANIZATION_LIMIT, 600),
    thresholds: REFUSES,
    run() {
      const response = inTurn(10);
      if (response.status !== 429) return;
      check(response, {
        'the Organization refused': (refusal) => refusal.json('extensions.bucket') === 'organization-read',
      });
    },
  },
  /** Writes of 1, 5 and 10 points beside each other, together above the limit. */
  'mixed-cost': {
    scenario: steadily(Math.ceil((3 * LIMIT) / MEAN_COST), 200),
    thresholds: REFUSES,
    run: () => send({ account: 1, method: 'POST', ...WRITES[turn() % WRITES.length] }),
  },
  /**
   * The runner kills Redis after a third of the run and starts it after two: every request is served, responses between the two say that
   * they were not counted, and the last ones are counted again.
   */
  'redis-down': {
    scenario: steadily(200, 200),
    thresholds: { http_req_failed: ['rate==0'], [degraded.name]: ['count>0'] },
    run() {
      const response = inTurn(ACCOUNTS);
      if (exec.scenario.progress < BACK) return;
      check(response, { 'is counted again': (answer) => header(answer, 'Ratelimit') !== undefined });
    },
  },
  /** For hours, against the replicas of `bench/soak`. The runner judges the checks: what a killed replica had begun may fail. */
  soak: {
    scenario: steadily(Number(__ENV.RATE), 2000, 500),
    thresholds: { checks: [] },
    run: () => send(soakRequest()),
  },
  /** Streams of a language model, with random reservations and costs. The runner judges them, and kills what answers. */
  settle: {
    scenario: { executor: 'constant-vus', vus: VUS, duration: `${SECONDS}s`, gracefulStop: '30s' },
    thresholds: { checks: [] },
    run: stream,
  },
};

const NAME = __ENV.SCRIPT ?? 'steady';
const script = SCRIPTS[NAME];
if (script === undefined) throw new Error(`There is no script ${NAME}`);
if (NAME === 'soak') http.setResponseCallback(http.expectedStatuses(200, 429));

export const options: Options = {
  scenarios: { [NAME]: script.scenario },
  thresholds: { ...KEPT, ...script.thresholds },
};

export default script.run;

interface Metric {
  readonly values: Readonly<Record<string, number>>;
  readonly thresholds?: Readonly<Record<string, { readonly ok: boolean }>>;
}

interface Data {
  readonly metrics: Readonly<Record<string, Metric>>;
}

const SHOWN = [
  'http_reqs',
  'http_req_duration',
  'straight_ms',
  'through_ms',
  'checks',
  'refused',
  'degraded',
  'dropped_iterations',
];

/** The figures as text for the terminal, and as JSON in the file that SUMMARY names. */
export function handleSummary({ metrics }: Data): Record<string, string> {
  const lines = SHOWN.flatMap((name) => {
    const metric = metrics[name];
    return metric === undefined ? [] : [`  ${name.padEnd(20)} ${valuesOf(metric)}`];
  });
  for (const [name, { thresholds = {} }] of Object.entries(metrics)) {
    for (const [rule, { ok }] of Object.entries(thresholds)) {
      lines.push(`  ${ok ? 'kept  ' : 'BROKEN'} ${name}: ${rule}`);
    }
  }
  const text = `${lines.join('\n')}\n`;
  const file = __ENV.SUMMARY;
  return file === undefined
    ? { stdout: text }
    : { stdout: text, [file]: JSON.stringify({ metrics }, null, 1) };
}

function valuesOf({ values }: Metric): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}=${Number.isInteger(value) ? value : value.toFixed(3)}`)
    .join(' ');
}
