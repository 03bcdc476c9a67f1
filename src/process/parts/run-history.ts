import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import { ofKind, type RecordedChange } from '../../admin/history/change.ts';
import { ChangeHistory, KEPT_MS, RUNNING_KIND } from '../../admin/history/change-history.ts';
import { ReplicaWatch } from '../../admin/history/replica-watch.ts';
import { version } from '../../config/package.ts';
import { pace } from '../../domain/pace.ts';
import { counted, shownTime } from '../../domain/shown.ts';
import type { Metrics } from '../../observe/metrics/metrics.ts';
import type { Reported } from './reported.ts';

/** A certificate is reported that ends within this time. */
const ENDING_MS = 14 * 86_400_000;

/** Between two looks at the certificates, and between two entries that this replica still runs. */
const LOOK_MS = 3_600_000;

/** Keeps what changes, which replicas join, leave and are lost, and when this one lost the store. */
export function runHistory({ sharing, clock, changes, metrics, tls }: Reported) {
  const shared = sharing.store;
  const nowMs = () => clock.nowMs();
  const history = new ChangeHistory(shared, nowMs);
  const [name, instance] = [hostname(), randomUUID()];
  changes.onNoticed = (change, isExact) =>
    history.add(isExact ? change : { ...change, replica: name, noticedBy: instance });
  const addWith: Add = (kind, text, more) =>
    history.add({ atMs: nowMs(), kind, subject: name, text, by: null, why: null, replica: name, ...more });
  const add: Add = (kind, text, more) => addWith(kind, text, { instance, ...more });
  /** For what others may notice as well. */
  const addNoticed: Add = (kind, text, more) => addWith(kind, text, { noticedBy: instance, ...more });
  const watch =
    shared && new ReplicaWatch(shared.openBoard('present', instance), { instance, name, history, nowMs });
  const ended = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  return {
    history,
    /** This replica serves requests. */
    joined() {
      const files = { limits: metrics.limitsVersion(), operations: metrics.operationsVersion() };
      const text = versionsText(metrics);
      const start = { instance, atMs: nowMs() };
      const notice = () => addDeploy(history, files, start, addNoticed);
      void notice().then((isNoticed) => {
        add('replica.joined', text);
        if (!isNoticed) void tryAgain(notice, ended.signal);
      });
      void watch?.run();
      const look = () => void addEnding(history, tls.ends, addNoticed);
      const renew = shared && renewal(text, start.atMs, () => versionsText(metrics), add);
      timer = setInterval(() => {
        look();
        renew?.(nowMs());
      }, LOOK_MS).unref();
      look();
    },
    /** The store was asked whether it answers. */
    storeMeasured: outages(metrics, nowMs, add),
    /** This replica leaves in order. */
    async close() {
      if (timer !== undefined) add('replica.left', `version ${version}`);
      clearInterval(timer);
      ended.abort();
      await history.close();
      await watch?.close();
    },
  };
}

type Add = (kind: string, text: string, more?: Partial<RecordedChange>) => void;

/** The versions that a replica runs with now. */
function versionsText(metrics: Pick<Metrics, 'limitsVersion' | 'operationsVersion'>): string {
  return `version ${version}, limits ${short(metrics.limitsVersion())}, operations ${short(metrics.operationsVersion())}`;
}

/** Writes that a replica runs, with its present versions and the time since when it has them. */
function renewal(startText: string, startMs: number, presentText: () => string, add: Add) {
  let [text, atMs] = [startText, startMs];
  return (nowMs: number) => {
    const present = presentText();
    if (present !== text) [text, atMs] = [present, nowMs];
    add(RUNNING_KIND, text, { atMs });
  };
}

/** As many characters of a version of files as the console shows. */
function short(sha: string): string {
  return sha.slice(0, 8);
}

/**
 * Adds a change of the version or of files, unless it is listed: the last replica that joined before this one had others. If no other one is
 * listed any more, the last one that runs. Returns false while the history cannot be read.
 */
async function addDeploy(
  history: ChangeHistory,
  files: Readonly<Record<'limits' | 'operations', string>>,
  { instance, atMs }: Pick<RecordedChange, 'instance' | 'atMs'>,
  add: Add,
): Promise<boolean> {
  const { changes, running, isWhole } = await history.read();
  if (!isWhole) return false;
  const lastOf = (all: readonly RecordedChange[]) =>
    all
      .filter((one) => one.instance !== instance && one.atMs <= atMs)
      .reduce<RecordedChange | undefined>((a, b) => (a && a.atMs >= b.atMs ? a : b), undefined);
  // A replica that runs on has its old version, and the files of a deploy that is under way.
  const last = lastOf(ofKind(changes, 'replica.joined')) ?? lastOf(running);
  if (last === undefined) return true;
  const [, before, limits, operations] = JOINED.exec(last.text) ?? [];
  if (before !== undefined && before !== version)
    add('version.changed', `${before} -> ${version}`, { subject: 'weir', atMs });
  const since = new Set(changes.filter((one) => one.atMs > last.atMs).map(({ kind }) => kind));
  const restarted = [
    ['limits', limits],
    ['operations', operations],
  ] as const;
  for (const [name, sha] of restarted) {
    const kind = `${name}.changed`;
    if (sha === undefined || sha === short(files[name]) || since.has(kind)) continue;
    add(kind, `${name} ${sha} -> ${short(files[name])}, by a restart`, { subject: name, atMs });
  }
  return true;
}

/** Repeats an attempt until it succeeds, for as long as changes are kept. */
async function tryAgain(attempt: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
  const endMs = performance.now() + KEPT_MS;
  for (let isDone = false; !isDone && performance.now() < endMs; ) {
    await setTimeout(pace.triesMs, undefined, { ref: false, signal }).catch(() => undefined);
    if (signal.aborted) return;
    isDone = await attempt();
  }
}

const JOINED = /^version ([^ ,]+)(?:, limits ([^ ,]+), operations ([^ ,]+))?$/;

/** Adds the certificates that end soon, once each. */
async function addEnding(history: ChangeHistory, ends: ReadonlyMap<string, number>, add: Add): Promise<void> {
  const soon = [...ends].filter(([, endMs]) => endMs - Date.now() < ENDING_MS);
  if (soon.length === 0) return;
  const { changes, isWhole } = await history.read();
  if (!isWhole) return;
  for (const [subject, endMs] of soon) {
    const text = `the certificate of ${subject} ends at ${shownTime(endMs)} UTC`;
    const isKnown = changes.some(
      (one) => one.kind === 'certificate.ending' && one.subject === subject && one.text === text,
    );
    if (!isKnown) add('certificate.ending', text, { subject });
  }
}

/** Receives whether the store answers, and adds when it was lost and was back. */
function outages(metrics: Metrics, nowMs: () => number, add: Add) {
  const totals = () => {
    const { degraded } = metrics.requestTotals();
    return { atMs: nowMs(), degraded, rejected: metrics.requestsRejected() };
  };
  let answered = totals();
  let isLost = false;
  return (isAnswering: boolean, hasMissed: boolean) => {
    if (isAnswering) {
      const now = totals();
      if (isLost)
        add('store.back', servedText(now.degraded - answered.degraded, now.rejected - answered.rejected), {
          subject: 'store',
        });
      // What was uncounted since the first miss is of the outage that may begin with it.
      if (!hasMissed) answered = now;
    } else if (!isLost) add('store.lost', 'does not answer', { subject: 'store', atMs: answered.atMs });
    isLost = !isAnswering;
  };
}

function servedText(degraded: number, rejected: number): string {
  const uncounted = counted(degraded, 'request');
  return `${uncounted} served uncounted${rejected === 0 ? '' : `, and ${rejected} answered with 503`}`;
}
