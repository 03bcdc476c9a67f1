import type { BucketUsage } from '../../admin/usage/owner-usage.ts';
import { limitTimeName } from '../../domain/duration.ts';
import { shownCount } from '../../domain/shown.ts';
import { duration, inFlightText, moment, unitOf } from '../format.ts';
import { setLimit, unsetLimit } from './actions/set-limit.ts';
import { Sparkline } from './widgets/chart.ts';
import { element, setText } from './widgets/dom.ts';
import { sinceText } from './widgets/figures.ts';

/** Readings in a bucket's history: a minute at two a second. */
const HISTORY = 120;

/** Fewer readings do not fill the width. */
const SHORTEST_HISTORY = 20;

/** A bucket with less than this share left is nearly empty. */
const NEAR_SHARE = 0.1;

/** A bucket as it fills and drains, with its limit, where the limit comes from, and what can be done about it. */
export function bucketCard({ bucket: name, owner, shadow }: BucketUsage) {
  const parts = partsOf(name);
  const history = new Sparkline();
  const left: number[] = [];
  let last: BucketUsage | undefined;
  let readAtMs: number | undefined;
  const buttons = actionsOf(() => last);
  const id = element('small', { class: 'muted id' }, owner);
  const node = element(
    'section',
    { class: `panel bucket${shadow ? ' shadow' : ''}`, 'data-bucket': name },
    element('div', { class: 'panel-head' }, element('h2', {}, name), id, parts.state),
    element('p', {}, parts.left, ' ', parts.limit),
    parts.meter,
    history.node,
    parts.returns,
    parts.source,
    buttons.node,
  );
  return {
    node,
    update(bucket: BucketUsage): void {
      last = bucket;
      const level = levelOf(bucket);
      node.dataset.level = level;
      parts.meter.setAttribute('aria-valuemax', String(bucket.limit));
      if (bucket.used === null) {
        parts.meter.removeAttribute('aria-valuenow');
        if (readAtMs === undefined) setText(parts.left, '–');
      } else {
        readAtMs = Date.now();
        const remaining = bucket.remaining ?? 0;
        left.push(remaining);
        if (left.length > HISTORY) left.shift();
        history.draw(left, Math.max(left.length, SHORTEST_HISTORY), Math.max(bucket.limit, 1));
        parts.fill.style.setProperty('--share', String(shareOf(remaining, bucket.limit)));
        parts.meter.setAttribute('aria-valuenow', String(remaining));
        setText(parts.left, shownCount(remaining));
      }
      setText(parts.limit, limitText(bucket));
      setText(parts.state, level === 'unknown' ? unknownText(readAtMs) : LEVELS[level]);
      setText(parts.returns, returnsText(bucket));
      setText(parts.source, sourceText(bucket));
      parts.source.title = bucket.writtenAt ?? '';
      buttons.update(bucket);
    },
  };
}

function partsOf(name: BucketUsage['bucket']) {
  const parts = {
    fill: element('div', { class: 'fill' }),
    meter: element('div', {
      class: 'meter',
      role: 'meter',
      'aria-label': `${name}: left`,
      'aria-valuemin': 0,
    }),
    left: element('b', { class: 'left' }),
    limit: element('span', { class: 'muted' }),
    state: element('span', { class: 'state' }),
    returns: element('p', { class: 'returns muted' }),
    source: element('p', { class: 'source muted' }),
  };
  parts.meter.append(parts.fill);
  return parts;
}

const LEVELS = { empty: '■ none left', near: '▲ nearly used up', room: '' };

function levelOf(bucket: BucketUsage): keyof typeof LEVELS | 'unknown' {
  if (bucket.used === null) return 'unknown';
  const share = shareOf(bucket.used, bucket.limit);
  if (share === 1) return 'empty';
  return share > 1 - NEAR_SHARE ? 'near' : 'room';
}

function shareOf(used: number, limit: number): number {
  return Math.min(1, used / limit);
}

/** @param readAtMs undefined for a bucket that was never read */
function unknownText(readAtMs: number | undefined): string {
  return readAtMs === undefined ? 'unknown' : sinceText(readAtMs);
}

function limitText(bucket: BucketUsage): string {
  const { limit, counts } = bucket;
  const left = `of ${shownCount(limit)} ${unitOf(counts)} left`;
  if (counts === 'concurrent') return left;
  // The time stays in one line.
  return `${left}, ${`per ${limitTimeName(bucket)}`.replaceAll(' ', '\u00a0')}`;
}

function returnsText(bucket: BucketUsage): string {
  const { counts, used, byReplica, period, nextPointsAfterSeconds, resetAfterSeconds } = bucket;
  if (used === null) return 'The store could not be read';
  if (counts === 'concurrent') return inFlightText(used, byReplica ?? []);
  if (period !== undefined) return `The ${period.unit} ends in ${seconds(resetAfterSeconds)}`;
  if (used === 0) return `All ${counts} are available`;
  return `Next ${counts} in ${seconds(nextPointsAfterSeconds)}, full again in ${seconds(resetAfterSeconds)}`;
}

function seconds(value: number | null): string {
  if (value === null) return '–';
  return value < 10 ? `${Math.max(0.1, value).toFixed(1)} s` : duration(value * 1_000);
}

const SOURCES = { default: 'Default', plan: 'Plan', override: 'Override', live: 'Live limit' };

function sourceText({ source, plan, writtenAt, until, why, by, shadow }: BucketUsage): string {
  const name = plan === null ? SOURCES[source] : `${SOURCES[source]} ${plan}`;
  const parts = [shadow ? `${name} in shadow: refuses nothing` : name];
  if (writtenAt !== null) parts.push(writtenAt.slice(writtenAt.lastIndexOf('/') + 1));
  if (until !== null) parts.push(`until ${moment(until)}`);
  if (why !== null) parts.push(`${why} (${by})`);
  return parts.join(' · ');
}

function actionsOf(current: () => BucketUsage | undefined) {
  const set = element('button', { type: 'button' }, 'Set a live limit…');
  const unset = element('button', { type: 'button', class: 'quiet', hidden: true }, 'Remove…');
  const act = (open: typeof setLimit) => () => {
    const shown = current();
    if (shown === undefined) return;
    const { bucket, scope, owner, limit, counts, period } = shown;
    open({ scope, id: owner, bucket, limit, counts, period: period?.unit });
  };
  set.addEventListener('click', act(setLimit));
  unset.addEventListener('click', act(unsetLimit));
  const node = element('div', { class: 'buttons' }, set, unset);
  return {
    node,
    update({ source, shadow }: BucketUsage) {
      node.hidden = shadow;
      unset.hidden = source !== 'live';
    },
  };
}
