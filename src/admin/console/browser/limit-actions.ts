import type { ShownLimit } from '../../limits/live.ts';
import { choiceInput, confirmAction, textInput } from './actions.ts';
import { ask } from './api.ts';
import { element } from './widgets/dom.ts';
import { count, moment } from './widgets/format.ts';

const DURATIONS = {
  '15m': '15 minutes',
  '1h': '1 hour',
  '2h': '2 hours',
  '8h': '8 hours',
  '1d': '1 day',
  '7d': '7 days',
};

/** The sections of the limits file, and of the paths of live limits. */
export const SECTIONS = {
  account: 'accounts',
  organization: 'organizations',
  address: 'addresses',
  principal: 'principals',
  service: 'principals',
};

/** Whose limits can be set. All Persons have the defaults. */
export type LimitScope = keyof typeof SECTIONS;

export function isLimitScope(scope: string | null | undefined): scope is LimitScope {
  return typeof scope === 'string' && scope in SECTIONS;
}

interface LimitTarget {
  readonly scope: LimitScope;
  readonly id: string;
  readonly bucket: string;
  /** The limit in force. */
  readonly limit: number;
}

/** Asks for another limit of a bucket, and sets it at all replicas. */
export function setLimit({ scope, id, bucket, limit }: LimitTarget): void {
  const points = element('input', {
    type: 'number',
    required: true,
    min: 1,
    step: 1,
    value: limit,
    inputmode: 'numeric',
  });
  const duration = choiceInput(DURATIONS, '1h');
  confirmAction({
    title: 'Set a live limit',
    fields: [
      { name: 'points', label: 'Points per window', control: points },
      {
        name: 'for',
        label: 'For',
        control: duration,
        hint: 'Then the files apply again. A longer limit belongs in the limits file.',
      },
    ],
    confirm: 'Set the limit',
    summary: (values) =>
      `${bucket} of ${id}: ${count(Number(values.get('points')))} points instead of ${count(limit)}, at every replica, for ${DURATIONS[duration.value as keyof typeof DURATIONS]}.`,
    async carryOut(values) {
      const [why, by] = [values.get('why'), values.get('by')];
      const body = { [bucket]: Number(values.get('points')), for: values.get('for'), why, by };
      const [set] = (await ask(
        `limits/live/${SECTIONS[scope]}/${encodeURIComponent(id)}`,
        'PUT',
        body,
      )) as ShownLimit[];
      const done = `${bucket} of ${id} is ${count(Number(set?.limit))} until ${moment(String(set?.until))}.`;
      return [done, ...(set?.notes ?? [])].join(' ');
    },
  });
}

/** Asks why, and removes a live limit at all replicas. */
export function unsetLimit({ scope, id, bucket, limit }: LimitTarget): void {
  confirmAction({
    title: 'Remove a live limit',
    fields: [],
    confirm: 'Remove the limit',
    isDangerous: true,
    summary: () =>
      `The live limit of ${count(limit)} points on ${bucket} of ${id} ends now. The files apply again.`,
    async carryOut(values) {
      const query = new URLSearchParams({ bucket, why: values.get('why') ?? '', by: values.get('by') ?? '' });
      const path = `limits/live/${SECTIONS[scope]}/${encodeURIComponent(id)}?${query}`;
      const [removed] = (await ask(path, 'DELETE')) as ShownLimit[];
      return [`The live limit on ${bucket} of ${id} is removed.`, ...(removed?.notes ?? [])].join(' ');
    },
  });
}

/** Asks for a token or principal, and revokes it at all replicas. */
export function revoke(): void {
  const kind = choiceInput(
    { principal: 'Everything a principal was given', token: 'One token' },
    'principal',
  );
  const target = textInput({ autocomplete: 'off' });
  const duration = choiceInput(
    { '1h': '1 hour', '24h': '24 hours', '7d': '7 days', '30d': '30 days' },
    '24h',
  );
  kind.addEventListener('input', () => {
    target.type = kind.value === 'token' ? 'password' : 'text';
    target.maxLength = kind.value === 'token' ? 16_384 : 200;
  });
  confirmAction({
    title: 'Revoke',
    fields: [
      { name: 'kind', label: 'What', control: kind },
      {
        name: 'target',
        label: 'Principal or token',
        control: target,
        hint: 'A token is hashed by the gateway, and neither stored nor logged.',
      },
      {
        name: 'for',
        label: 'Remember it for',
        control: duration,
        hint: 'At least as long as the token is valid.',
      },
    ],
    confirm: 'Revoke',
    isDangerous: true,
    summary: (values) =>
      values.get('kind') === 'token'
        ? 'This token no longer authenticates at any replica.'
        : `No token that ${values.get('target') || 'the principal'} was given until now authenticates at any replica.`,
    async carryOut(values) {
      const { kind: name = 'principal', target: given = '', ...rest } = Object.fromEntries(values);
      const { notes } = (await ask('revocations', 'POST', { [name]: given, ...rest })) as {
        notes: readonly string[];
      };
      return ['Revoked.', ...notes].join(' ');
    },
  });
}

/** Asks why, and undoes a revocation at all replicas. */
export function undoRevocation({ kind, target }: { readonly kind: string; readonly target: string }): void {
  confirmAction({
    title: 'Undo a revocation',
    fields: [],
    confirm: 'Undo the revocation',
    isDangerous: true,
    summary: () => `${kind === 'token' ? 'The token' : 'The principal'} ${target} authenticates again.`,
    async carryOut(values) {
      const query = new URLSearchParams({ why: values.get('why') ?? '', by: values.get('by') ?? '' });
      await ask(`revocations/${kind}s/${encodeURIComponent(target)}?${query}`, 'DELETE');
      return `${target} is no longer revoked.`;
    },
  });
}
