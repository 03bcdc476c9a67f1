import type { ShownLimit } from '../../../admin/facts/live-limit-api.ts';
import { shownCount } from '../../../domain/shown.ts';
import { moment, unitOf } from '../../format.ts';
import { ask } from '../api.ts';
import { element } from '../widgets/dom.ts';
import { durationInput, durationText } from '../widgets/inputs.ts';
import { confirmAction, reasonQuery } from './dialog.ts';

const DURATIONS = ['15m', '1h', '2h', '8h', '1d', '7d'];

/** The sections of the limits file, and of the paths of live limits. */
export const SECTIONS: Readonly<Record<ShownLimit['scope'], string>> = {
  account: 'accounts',
  person: 'principals',
  organization: 'organizations',
  address: 'addresses',
  principal: 'principals',
  service: 'principals',
};

interface LimitTarget {
  readonly scope: ShownLimit['scope'];
  readonly id: string;
  readonly bucket: string;
  /** The limit in force. */
  readonly limit: number;
  readonly counts: 'points' | 'requests' | 'concurrent';
  /** The period of the calendar that it applies to; undefined for a window. */
  readonly period: string | undefined;
}

/** `Points per window`. */
function labelOf({ counts, period = 'window' }: LimitTarget): string {
  const unit = unitOf(counts);
  const label = `${unit[0]?.toUpperCase()}${unit.slice(1)}`;
  return counts === 'concurrent' ? label : `${label} per ${period}`;
}

/** Asks for another limit of a bucket, and sets it at all replicas. */
export function setLimit(target: LimitTarget): void {
  const { scope, id, bucket, limit } = target;
  const points = element('input', {
    type: 'number',
    required: true,
    min: 1,
    step: 1,
    value: limit,
    inputmode: 'numeric',
  });
  const duration = durationInput(DURATIONS, '1h');
  confirmAction({
    title: 'Set a live limit',
    fields: [
      { name: 'points', label: labelOf(target), control: points },
      {
        name: 'for',
        label: 'For',
        control: duration,
        hint: 'Then the files apply again. A longer limit belongs in the limits file.',
      },
    ],
    confirm: 'Set the limit',
    summary: (values) =>
      `${bucket} of ${id}: ${shownCount(Number(values.get('points')))} ${unitOf(target.counts)} instead of ${shownCount(limit)}, at every replica, for ${durationText(duration.value)}.`,
    async carryOut(values) {
      const [why, by] = [values.get('why'), values.get('by')];
      const body = { [bucket]: Number(values.get('points')), for: values.get('for'), why, by };
      const [set] = (await ask(
        `limits/live/${SECTIONS[scope]}/${encodeURIComponent(id)}`,
        'PUT',
        body,
      )) as ShownLimit[];
      const done = `${bucket} of ${id} is ${shownCount(Number(set?.limit))} until ${moment(String(set?.until))}.`;
      return [done, ...(set?.notes ?? [])].join(' ');
    },
  });
}

/** Asks why, and removes a live limit at all replicas. */
export function unsetLimit({ scope, id, bucket, limit, counts }: Omit<LimitTarget, 'period'>): void {
  confirmAction({
    title: 'Remove a live limit',
    fields: [],
    confirm: 'Remove the limit',
    isDangerous: true,
    summary: () =>
      `The live limit of ${shownCount(limit)} ${unitOf(counts)} on ${bucket} of ${id} ends now. The files apply again.`,
    async carryOut(values) {
      const query = `${new URLSearchParams({ bucket })}&${reasonQuery(values)}`;
      const path = `limits/live/${SECTIONS[scope]}/${encodeURIComponent(id)}?${query}`;
      const [removed] = (await ask(path, 'DELETE')) as ShownLimit[];
      return [`The live limit on ${bucket} of ${id} is removed.`, ...(removed?.notes ?? [])].join(' ');
    },
  });
}
