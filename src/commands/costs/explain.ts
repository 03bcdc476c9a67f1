import { inFlightText } from '../../console/format.ts';
import { unitOf } from '../../domain/limits/rows.ts';
import { canonicalAddress } from '../../domain/network.ts';
import { settlementJson, settlementText } from '../../domain/settlement/settlement-text.ts';
import { BLOCKS } from '../../facts/blocks.ts';
import { readFacts } from '../../facts/fact-record.ts';
import { LIVE_LIMITS } from '../../facts/live-limits.ts';
import { REVOCATIONS } from '../../facts/revocation-message.ts';
import { SharedClock } from '../../facts/shared-clock.ts';
import type { ListedOperation } from '../../operations/listed-operation.ts';
import { kindOf } from '../../operations/listed-operation.ts';
import { type Configuration, readConfiguration } from '../../process/configuration.ts';
import { CommandError } from '../../process/failure.ts';
import { openShared } from '../../store/open-store.ts';
import { print, printError, printJson, shownPlace } from '../print.ts';
import type { Line } from '../terminal/line.ts';
import { windowText } from '../usage.ts';
import { type Explanation, explainRequest, type LiveState } from './explanation.ts';
import { operationJson } from './operations.ts';
import { readSlots } from './slots.ts';

/**
 * `weir explain`: which operation a request is, what it costs and where that is written, and who would pay. The exit code is 1 if the
 * request would be refused.
 */
export async function explain(
  method: string,
  path: string,
  options: {
    readonly config: string;
    readonly token?: string;
    readonly account?: string;
    readonly address?: string;
    readonly json?: true;
  },
): Promise<void> {
  const { config, token, account, address, json } = options;
  const clientAddress = address === undefined ? undefined : canonicalAddress(address);
  if (address !== undefined && clientAddress === undefined)
    throw new CommandError(
      `--address takes an IP address, such as 203.0.113.7 or 2001:db8::1, not "${address}".`,
    );
  const configuration = await readConfiguration(config, process.env);
  const explanation = await explainRequest(configuration, {
    method: method.toUpperCase(),
    path,
    token,
    account,
    address: clientAddress,
    live: await liveStateOf(configuration),
  });
  if (json) printJson(asJson(explanation));
  else print(...asLines(explanation));
  if (explanation.refusal !== undefined || explanation.errors.length > 0) process.exitCode = 1;
}

async function liveStateOf({ settings }: Configuration): Promise<LiveState> {
  const shared = openShared(settings.store);
  const slotsOf: LiveState['slotsOf'] = (buckets) => readSlots(settings.store, buckets);
  try {
    const [limits, blocks, revocations] = await Promise.all([
      readFacts(shared, LIVE_LIMITS),
      readFacts(shared, BLOCKS),
      readFacts(shared, REVOCATIONS),
    ]);
    return { limits, blocks, revocations, slotsOf };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    printError(`Live limits, blocks and revocations are not known: Redis does not answer (${reason}).`);
    const none = { facts: [], clock: new SharedClock() };
    return { limits: none, blocks: none, revocations: none, slotsOf: async () => undefined };
  }
}

/** The form for programs, with every member always present. */
function asJson(explanation: Explanation): object {
  const { method, path, operation, caller, plan, buckets, policy, errors, refusal, reason, note } =
    explanation;
  return {
    method,
    path,
    operation: operation === undefined ? null : operationOf(operation),
    principal: caller?.principal.id || null,
    account: caller?.account ?? null,
    organization: caller?.organization ?? null,
    plan: plan ?? null,
    buckets: buckets.map((bucket) => ({ ...bucket, of: bucket.of ?? null })),
    policy: policy ?? null,
    errors,
    refusal:
      refusal === undefined
        ? null
        : {
            status: refusal.status,
            code: refusal.code,
            detail: refusal.detail,
            reason: reason?.reason ?? null,
            reasonText: reason?.text ?? null,
          },
    note: note ?? null,
  };
}

function operationOf(operation: Exclude<Explanation['operation'], undefined>): object {
  if (operation === 'free') return { id: 'free', listed: false, cost: 0, kind: null };
  if (operation === 'own limits') return { id: 'usage', listed: false, cost: 0, kind: 'read' };
  if (isListed(operation))
    return { ...operationJson(operation), listed: operation.listed, validation: validationOf(operation) };
  const { id, cost, kind, access, listed } = operation;
  const common = { id, listed, cost, kind, personOnly: access === 'person', public: access === 'public' };
  return { ...common, costWrittenAt: null, ...settlementJson(operation), validation: { mode: 'none' } };
}

/** Names of validated parameters. An open query takes other parameters as well. */
function validationOf({ validation, rules }: ListedOperation): object {
  if (rules === undefined) return { mode: validation };
  return {
    mode: validation,
    query: { parameters: [...rules.query.byName.keys()], others: rules.query.isOpen ? 'pass' : '422' },
    path: rules.path.map(({ name }) => name),
    headers: rules.headers.map(({ name }) => name),
    body: [...(rules.body?.byMediaType.keys() ?? [])],
  };
}

function asLines(explanation: Explanation): readonly Line[] {
  const { method, path, operation, plan, buckets, policy, errors, refusal, reason, note } = explanation;
  const lines: [string, string][] = [];
  if (operation === 'free') lines.push(['operation', 'none: OPTIONS is neither authenticated nor counted']);
  else if (operation === 'own limits') lines.push(...OWN_LIMITS);
  else if (operation !== undefined) lines.push(...operationLines(operation));
  if (plan !== undefined) lines.push(['plan', plan]);
  for (const bucket of buckets) lines.push(['charged to', bucketText(bucket)]);
  if (policy !== undefined) lines.push(['policy', policy]);
  for (const { field, message } of errors) lines.push(['422 for', `${field}: ${message}`]);
  if (refusal !== undefined) lines.push(['refused', `${refusal.status} ${refusal.code}: ${refusal.detail}`]);
  if (reason !== undefined) lines.push(['because', `${reason.reason}: ${reason.text}`]);
  if (note !== undefined) lines.push(['note', note]);
  const rows = lines.map(([name, value]): Line => {
    return ['  ', { style: STYLES[name] ?? 'dim', text: name.padEnd(11) }, value];
  });
  return [[{ style: 'bold', text: `${method} ${path}` }], ...rows];
}

const STYLES: Readonly<Record<string, 'red'>> = { '422 for': 'red', refused: 'red' };

function bucketText(explained: Explanation['buckets'][number]): string {
  const {
    bucket,
    of: owner = 'anyone without an override',
    limit,
    counts = 'points',
    shadow,
    live,
    inFlight,
    byReplica = [],
  } = explained;
  const tried = shadow ? ', tried out: it refuses nothing' : '';
  const used = inFlight === undefined ? '' : `, ${inFlightText(inFlight, byReplica)}`;
  return `${bucket} of ${owner}: ${limit} ${unitOf(counts)}${windowText(explained)}${tried}${liveText(live)}${used}`;
}

function liveText(live: Explanation['buckets'][number]['live']): string {
  return live === undefined ? '' : `, live until ${live.until}, set by ${live.by}: ${live.why}`;
}

function operationLines(
  operation: Exclude<Explanation['operation'], undefined | 'free' | 'own limits'>,
): [string, string][] {
  const { id, cost, kind, access } = operation;
  const points = `${cost} ${cost === 1 ? 'point' : 'points'}`;
  const text = settlementText(operation);
  const settlement: [string, string][] = text === undefined ? [] : [['settlement', text]];
  if (!isListed(operation)) {
    return [
      ['operation', 'not listed: no document describes it'],
      ['cost', `${points}, by the setting operations.unlisted`],
      ...settlement,
      ['kind', kind],
      ['validates', 'nothing'],
    ];
  }
  const { method, path, writtenAt, costWrittenAt } = operation;
  const byMethod = kind === kindOf(method);
  return [
    ['operation', `${id} (${method} ${path}), ${shownPlace(writtenAt)}`],
    ['cost', `${points}, ${costWrittenAt === undefined ? 'by default' : shownPlace(costWrittenAt)}`],
    ...settlement,
    ['kind', `${kind}${byMethod ? '' : ', by x-weir'}`],
    ['callers', CALLERS[access]],
    ['validates', validationText(operation)],
  ];
}

const CALLERS = {
  caller: 'any, with a token',
  person: 'Persons only, with a token',
  public: 'public: needs no token',
} as const;

const OWN_LIMITS: readonly [string, string][] = [
  ['operation', 'none: the gateway answers with the limits of the caller, by the setting usage.path'],
  ['cost', '0 points'],
  ['callers', CALLERS.caller],
];

function validationText({ rules }: ListedOperation): string {
  if (rules === undefined) return 'nothing';
  const { query, path, headers, body } = rules;
  const names = [...query.byName.keys()];
  const parts: string[] = [];
  if (names.length > 0)
    parts.push(`query ${listed(names)} and ${query.isOpen ? 'any' : 'no'} other parameters`);
  else if (!query.isOpen) parts.push('query without parameters');
  if (path.length > 0) parts.push(`path ${listed(path.map(({ name }) => name))}`);
  if (headers.length > 0) parts.push(`headers ${listed(headers.map(({ name }) => name))}`);
  if (body !== undefined) parts.push(`body ${listed([...body.byMediaType.keys()])}`);
  return parts.length === 0 ? 'nothing' : parts.join('; ');
}

function listed(words: readonly string[]): string {
  return words.join(', ');
}

function isListed(operation: object): operation is ListedOperation {
  return 'writtenAt' in operation;
}
