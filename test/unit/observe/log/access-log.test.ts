import fc from 'fast-check';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { Caller } from '../../../../src/domain/caller.ts';
import { Refusal } from '../../../../src/domain/problems.ts';
import { UNSETTLED_REASONS } from '../../../../src/domain/settlement/settlement.ts';
import { AccessLog } from '../../../../src/observe/log/access-log.ts';
import type { Charged, RequestContext } from '../../../../src/stages/request-context.ts';
import { generatedCases } from '../../../fixtures/generated-cases.ts';
import { requestWith } from '../../../fixtures/request-context.ts';

const lines: string[] = [];
const output = { write: (line: string) => void lines.push(line) };
const log = pino({ level: 'info' }, output);
const accessLog = new AccessLog(log, output);

test('every line has the fields of the settings', () => {
  const fields = { 'deployment.environment.name': 'test "1"\u2028' };
  const withFields = new AccessLog(log, output, fields);
  const line = written(() => withFields.write(requestWith({ requestId: 'r1' }), 200, 1));
  expect(line).toMatchObject({ pid: process.pid, requestId: 'r1', ...fields });
  expect(lines[0]).not.toContain('\u2028');
});

function written(write: () => void): Record<string, unknown> {
  lines.length = 0;
  write();
  expect(lines).toHaveLength(1);
  expect(lines[0]?.indexOf('\n')).toBe((lines[0]?.length ?? 0) - 1);
  return JSON.parse(lines[0] ?? '') as Record<string, unknown>;
}

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('"', '\\', '\n', '\ud800', 'é', '\u2028'),
);
const duration = fc.option(fc.double({ min: 0, max: 1e6, noNaN: true }), { nil: undefined });

const charged: fc.Arbitrary<Charged | undefined> = fc.oneof(
  fc.constant(undefined),
  fc.record({
    outcome: fc.constant('admitted' as const),
    policy: fc.constant(''),
    rateLimit: fc.constant(''),
    nearLimit: fc.constant(undefined),
    shadowDenied: fc.option(fc.array(text), { nil: undefined }),
  }),
  fc.record({
    outcome: fc.constant('denied' as const),
    policy: fc.constant(''),
    rateLimit: fc.constant(''),
    bucket: text,
    owner: text,
    limit: fc.nat(),
    windowSeconds: fc.nat(),
    remaining: fc.nat(),
    retryAfterUs: fc.nat(),
    refusal: fc.constant(new Refusal('RateLimitExceeded', '')),
  }),
  fc.constant({ outcome: 'uncounted' as const, policy: '', reason: 'deadline' as const }),
);

const caller = fc.record({
  account: text,
  organization: fc.option(text, { nil: undefined }),
  hasOrganizationLimit: fc.boolean(),
  principal: fc.record({ id: text, type: fc.constantFrom('Person', 'ServiceAccount') }),
}) as unknown as fc.Arbitrary<Caller>;

const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

const FROM = { clientAddress: '192.0.2.1', traceparent: TRACEPARENT };

const context = fc.record(
  {
    source: fc.record({ heldMs: fc.nat() }, { requiredKeys: [] }),
    requestId: text,
    method: text,
    startedMs: fc.constant(0),
    clientAddress: text,
    traceparent: fc.constant(TRACEPARENT),
    target: fc.record({ path: text, search: fc.constant('?secret=1') }),
    operation: fc.record({
      id: text,
      kind: fc.constantFrom('read', 'write'),
      cost: fc.integer({ min: 0, max: 10 }),
      access: fc.constantFrom('caller', 'person', 'public'),
      listed: fc.boolean(),
    }),
    caller,
    publicClient: fc.record({ address: text, hashTag: text }),
    charged,
    refusal: fc.constant(new Refusal('Forbidden', 'a detail')),
    settledCost: fc.nat(),
    unsettled: fc.constantFrom(...UNSETTLED_REASONS),
    chargeMs: duration,
    upstreamMs: duration,
    upstreamStatus: fc.integer({ min: 200, max: 999 }),
    upstreamError: text,
    upstreamErrorDetail: text,
  },
  { requiredKeys: ['source', 'requestId', 'method', 'startedMs', 'clientAddress', 'traceparent'] },
) as fc.Arbitrary<RequestContext>;

const rounded = (ms: number | undefined) => (ms === undefined ? undefined : Math.round(ms * 1000) / 1000);

const heldMsOf = ({ operation, source }: RequestContext) => operation && source.heldMs;

/** What pino writes of the same request. */
function byPino(of: RequestContext, status: number, totalMs: number): void {
  const { caller: by, charged: charge, operation, refusal } = of;
  const denied = charge?.outcome === 'denied' ? charge : undefined;
  const isExempt = by?.organization !== undefined && !by.hasOrganizationLimit;
  log.info(
    {
      requestId: of.requestId,
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      clientAddress: of.clientAddress,
      method: of.method,
      path: of.target?.path,
      operation: operation?.id,
      account: by?.account,
      organization: by?.organization,
      organizationLimit: isExempt ? false : undefined,
      principal: by?.principal.id,
      address: of.publicClient?.address,
      kind: operation?.kind,
      cost: operation?.cost,
      heldMs: heldMsOf(of),
      settled: operation && of.settledCost,
      unsettled: operation && of.unsettled,
      personOnly: operation?.access === 'person' ? true : undefined,
      public: operation?.access === 'public' ? true : undefined,
      outcome: charge?.outcome ?? (refusal === undefined ? 'free' : 'refused'),
      reason: charge?.outcome === 'uncounted' ? charge.reason : refusal?.code,
      bucket: denied?.bucket,
      limit: denied?.limit,
      windowSeconds: denied?.windowSeconds,
      remaining: denied?.remaining,
      retryAfterMs: denied && denied.retryAfterUs / 1000,
      shadowDenied: charge?.outcome === 'admitted' ? charge.shadowDenied : undefined,
      status,
      upstreamStatus: of.upstreamStatus,
      upstreamError: of.upstreamError,
      upstreamErrorDetail: of.upstreamErrorDetail,
      chargeMs: rounded(of.chargeMs),
      upstreamMs: rounded(of.upstreamMs),
      totalMs: rounded(totalMs),
    },
    'request',
  );
}

test("a line has the same members in the same order as pino's, for any text", () => {
  fc.assert(
    fc.property(
      context,
      fc.integer({ min: 200, max: 599 }),
      fc.double({ min: 0, max: 1e6, noNaN: true }),
      (of, status, totalMs) => {
        const own = { ...written(() => accessLog.write(of, status, totalMs)), time: 0 };
        const expected = { ...written(() => byPino(of, status, totalMs)), time: 0 };
        expect(JSON.stringify(own)).toBe(JSON.stringify(expected));
      },
    ),
    { numRuns: generatedCases(1_000) },
  );
});

test('the charge is dated by the wall clock', () => {
  const beforeMs = Date.now() - 10;
  const chargeAskedMs = performance.now();
  const { chargedAtUs, time } = written(() =>
    accessLog.write(requestWith({ requestId: 'a', ...FROM, chargeAskedMs }), 200, 1),
  );
  expect(Number(chargedAtUs)).toBeGreaterThan(beforeMs * 1000);
  expect(Number(chargedAtUs)).toBeLessThan((Number(time) + 10) * 1000);
});

test('no line is written if the level excludes info', () => {
  lines.length = 0;
  new AccessLog(pino({ level: 'warn' }, output), output).write(
    requestWith({ requestId: 'a', ...FROM }),
    200,
    1,
  );
  expect(lines).toEqual([]);
});

test('a line says what a program named itself: the cost, and the limits', () => {
  const operation = { id: 'listThings', kind: 'read', access: 'caller', cost: 7, listed: true } as const;
  const line = (source: object) => {
    const request = requestWith({ requestId: 'r1' });
    Object.assign(request, { protocol: 'decide', operation, source: { ...source, field: () => undefined } });
    return written(() => accessLog.write(request, 200, 1));
  };
  expect(line({ askedCost: 7, askedLimits: ['jobs'] })).toMatchObject({
    decision: 'decide',
    cost: 7,
    namedCost: true,
    limits: ['jobs'],
  });
  const plain = line({});
  expect(plain).not.toHaveProperty('namedCost');
  expect(plain).not.toHaveProperty('limits');
});
