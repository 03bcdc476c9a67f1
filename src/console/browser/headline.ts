import type { FleetSnapshot, Loss, ReplicaState } from '../../admin/fleet/snapshot.ts';
import { counted, shownCount } from '../../domain/shown.ts';
import { clock, duration, moment, percent } from '../format.ts';
import { seeLosses } from './actions/see-losses.ts';
import { byId, element, icon, quietButton, setText } from './widgets/dom.ts';
import { sinceText } from './widgets/figures.ts';

export type Level = 'good' | 'warning' | 'bad';

interface FleetProblem {
  readonly level: Level;
  /** A sentence, whose links lead to the cause. */
  readonly text: readonly (string | { readonly text: string; readonly href: string })[];
  /** A button behind the sentence. */
  readonly button?: { readonly text: string; act(): void };
  /** Too small for the headline, however little else there is. */
  readonly isMinor?: boolean;
}

/** A share of requests below this, or fewer refusals in ten seconds, does not make the headline. */
const MAJOR_SHARE = 0.01;
const MAJOR_REFUSALS = 10;

/** From this share on, one owner is the cause of refusals. */
const CAUSE_SHARE = 0.3;

const REPLICAS = '#replicas';
const CHANGES = '#changes';

/** Shows what is wrong, the worst first, and what was counted. */
export function showHeadline(fleet: FleetSnapshot): void {
  const { replicas, second, totals } = fleet;
  const problems = problemsOf(fleet);
  const first = problems.find(({ isMinor }) => !isMinor);
  const healthy = replicas.length === 1 ? 'The replica is' : `All ${replicas.length} replicas are`;
  showSentence(byId('headline'), first ?? { level: 'good', text: [`${healthy} healthy`] });
  const others = problems.filter((one) => one !== first);
  const list = byId('problems');
  for (const [index, problem] of others.entries()) {
    const item = list.children[index] ?? list.appendChild(element('li'));
    showSentence(item as HTMLElement, problem);
  }
  while (list.children.length > others.length) list.lastElementChild?.remove();
  const known = replicas.filter(isKnown).length;
  const part = partOf(fleet);
  setText(
    byId('facts'),
    `${shownCount(totals.requests)} requests and ${shownCount(totals.points)} points since the ${known === 1 ? 'replica' : 'replicas'} started${part === undefined ? '' : `, ${part}`} · as of ${clock(second * 1_000)}`,
  );
}

/**
 * Shows that nothing has come from the gateway since then, and where other replicas were.
 *
 * @param problem why, if it is known
 */
export function showLost(
  sinceMs: number,
  replicas: readonly ReplicaState[],
  problem = 'The connection is lost',
): void {
  const text = [`${problem}: everything here is ${sinceText(sinceMs)}`];
  showSentence(byId('headline'), { level: 'bad', text });
  const others = replicas.filter(({ adminUrl }) => adminUrl !== null && adminUrl !== location.origin);
  const links = others.map(({ name, adminUrl }) =>
    element('li', {}, element('a', { href: String(adminUrl) }, `${name} at ${adminUrl}`)),
  );
  byId('problems').replaceChildren(...links);
  setText(
    byId('facts'),
    `The page tries to reach this replica, or another one at the same address.${links.length === 0 ? '' : ' The others had their own consoles at these.'}`,
  );
}

/** Changes nothing where it says so already, so that a link keeps the focus. */
function showSentence(node: HTMLElement, { level, text, button }: FleetProblem): void {
  const key = JSON.stringify([level, text]);
  if (node.dataset.key === key) return;
  node.dataset.key = key;
  const parts = text.map((part) =>
    typeof part === 'string' ? part : element('a', { href: part.href }, part.text),
  );
  const buttons = button === undefined ? [] : [quietButton(button.text, button.act)];
  node.replaceChildren(icon(level), element('span', {}, ...parts), ...buttons);
}

export function isKnown({ unknownSinceMs }: Pick<ReplicaState, 'unknownSinceMs'>): boolean {
  return unknownSinceMs === null;
}

/** Which replicas the sums cover, such as `at 1 of 3 replicas`. Undefined if they cover all. */
export function partOf({
  replicas,
  othersUnknownSinceMs,
}: Pick<FleetSnapshot, 'replicas' | 'othersUnknownSinceMs'>): string | undefined {
  const known = replicas.filter(isKnown).length;
  if (known < replicas.length) return `at ${known} of ${replicas.length} replicas`;
  return othersUnknownSinceMs === null ? undefined : 'at this replica alone';
}

export function isDown({ breaker, unknownSinceMs }: ReplicaState['store']): boolean {
  return unknownSinceMs === null && breaker !== 'closed';
}

/** A certificate that ends within this time has to be replaced now. */
const ENDING_MS = 14 * 86_400_000;

/** Whether a certificate of the replica ends soon, or has ended. */
export function isEnding({ certificateEndsMs }: ReplicaState): boolean {
  return certificateEndsMs !== null && certificateEndsMs - Date.now() < ENDING_MS;
}

/** As old as the alert WeirJournalBehind lets a count become. */
const BEHIND_SECONDS = 60;

function hasEnded({ certificateEndsMs }: ReplicaState): boolean {
  return certificateEndsMs !== null && certificateEndsMs <= Date.now();
}

/** The worst first. */
function problemsOf(fleet: FleetSnapshot): readonly FleetProblem[] {
  const { replicas, rates } = fleet;
  const of = (affected: number) =>
    replicas.length === 1 ? '' : ` at ${affected} of ${replicas.length} replicas`;
  const known = replicas.filter(isKnown);
  const about = (
    isIt: (replica: ReplicaState) => boolean,
    level: Level,
    what: string,
    rest = '',
  ): readonly FleetProblem[] => {
    const affected = known.filter(isIt).length;
    return affected === 0
      ? []
      : [{ level, text: [{ text: what, href: REPLICAS }, `${rest}${of(affected)}`] }];
  };
  const share = (level: Level, part: number, text: string): readonly FleetProblem[] =>
    part === 0
      ? []
      : [{ level, text: [`${percent(part)} of requests ${text}`], isMinor: part < MAJOR_SHARE }];
  const versions = new Set(known.map(({ limits }) => limits)).size;
  const costs = new Set(known.map(({ operations }) => operations)).size;
  const programs = new Set(known.map(({ version }) => version)).size;
  const differ = (what: string, number: number): readonly FleetProblem[] =>
    number < 2
      ? []
      : [
          {
            level: 'warning',
            text: [{ text: `${number} versions`, href: REPLICAS }, ` of ${what}`],
          },
        ];
  return [
    ...about(({ store }) => isDown(store), 'bad', 'The store', ' does not answer'),
    ...unknownProblem(fleet),
    ...about(({ store }) => store.unknownSinceMs !== null, 'bad', 'Whether the store answers', ' is unknown'),
    ...share('bad', rates.failedShare, 'fail with 503'),
    ...share('bad', rates.degradedShare, 'are served uncounted'),
    ...lossProblem(fleet),
    ...about(hasEnded, 'bad', 'A certificate', ' has expired'),
    ...about(
      ({ journalLagSeconds }) => (journalLagSeconds ?? 0) > BEHIND_SECONDS,
      'warning',
      'The journal',
      ' has not been written for more than a minute',
    ),
    ...differ('the limits are in force', versions),
    ...differ('the costs are in force', costs),
    ...differ('Weir are running', programs),
    ...about(({ isReady }) => !isReady, 'warning', 'Replicas are not ready'),
    ...about((one) => isEnding(one) && !hasEnded(one), 'warning', 'A certificate', ' ends within 14 days'),
    ...refusalProblem(fleet),
    ...about(({ store }) => store.unsafeSettings > 0, 'warning', 'Redis', ' is not set up for strict limits'),
  ].sort((a, b) => Number(a.isMinor ?? false) - Number(b.isMinor ?? false));
}

/** Who causes the refusals, or how many there are. */
function refusalProblem({ rates, cause }: FleetSnapshot): readonly FleetProblem[] {
  const { refused, refusedShare } = rates;
  if (refused === 0) return [];
  const isMinor = refused < MAJOR_REFUSALS || refusedShare < MAJOR_SHARE;
  const all = `${percent(refusedShare)} of requests are refused`;
  if (isMinor)
    return [{ level: 'warning', text: [`${counted(refused, 'request')} refused in 10 s`], isMinor }];
  if (cause === null) return [{ level: 'warning', text: [all] }];
  const { scope, id, share } = cause;
  const link = { text: id, href: `#/${scope}/${encodeURIComponent(id)}` };
  const text: FleetProblem['text'] =
    share < CAUSE_SHARE
      ? [link, ` has the largest share of refusals, ${percent(share)}: ${all}`]
      : [link, ` causes ${percent(share)} of refusals: ${all}`];
  return [{ level: 'warning', text }];
}

/** The times of losses that a sentence has. */
const MOST_NAMED = 3;

/** What was lost, until somebody has seen it. */
function lossProblem({ losses }: FleetSnapshot): readonly FleetProblem[] {
  const { latest, count, untilMs } = losses;
  if (count === 0) return [];
  const groups = lossGroups(latest);
  const named = groups.slice(0, MOST_NAMED);
  const more = count - named.flat().length;
  const text = [...named.map(lossText), ...(more > 0 ? [`${shownCount(more)} more`] : [])].join(' · ');
  return [
    {
      level: 'bad',
      text: [{ text: 'Lost', href: CHANGES }, `: ${text}`],
      button: { text: 'Seen…', act: () => seeLosses(count, untilMs) },
    },
  ];
}

/** Replicas lose the store in the same outage up to this far apart. */
const SAME_OUTAGE_MS = 60_000;

/** Each replica, and each outage of the store with all of its replicas. */
function lossGroups(latest: readonly Loss[]): readonly (readonly Loss[])[] {
  const groups: Loss[][] = [];
  for (const loss of latest) {
    const isSame = ([first]: readonly Loss[]) =>
      first?.what === 'store' && loss.what === 'store' && first.atMs - loss.atMs < SAME_OUTAGE_MS;
    const known = groups.find(isSame);
    if (known === undefined) groups.push([loss]);
    else known.push(loss);
  }
  return groups;
}

function lossText(group: readonly Loss[]): string {
  const [first] = group;
  // One replica may have lost the store several times.
  const replicas = new Set(group.map(({ instance, replica }) => instance ?? replica)).size;
  const at = replicas === 1 ? first?.replica : counted(replicas, 'replica');
  const who = first?.what === 'replica' ? `replica ${first.replica}` : `the store at ${at}`;
  const fromMs = Math.min(...group.map(({ atMs }) => atMs));
  const backs = group.flatMap(({ backAtMs }) => backAtMs ?? []);
  const since = moment(new Date(fromMs).toISOString());
  return backs.length < group.length
    ? `${who} since ${since}`
    : `${who} on ${since}, for ${duration(Math.max(...backs) - fromMs)}`;
}

function unknownProblem({ replicas, othersUnknownSinceMs }: FleetSnapshot): readonly FleetProblem[] {
  const times = replicas.flatMap(({ unknownSinceMs }) => (unknownSinceMs === null ? [] : [unknownSinceMs]));
  if (times.length === 0 && othersUnknownSinceMs === null) return [];
  const reason = othersUnknownSinceMs === null ? '' : ', because Redis cannot be read';
  const sinceMs = Math.min(...times, ...(times.length === 0 ? [othersUnknownSinceMs ?? 0] : []));
  const what = times.length === 0 ? 'Other replicas' : `${times.length} of ${replicas.length} replicas`;
  const are = times.length === 0 ? ' are' : '';
  return [{ level: 'bad', text: [{ text: what, href: REPLICAS }, `${are} ${sinceText(sinceMs)}${reason}`] }];
}
