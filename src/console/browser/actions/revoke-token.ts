import { LONGEST_ID } from '../../../domain/caller.ts';
import { ask } from '../api.ts';
import { choiceInput, durationInput, textInput } from '../widgets/inputs.ts';
import { confirmAction, reasonQuery } from './dialog.ts';

/** Asks for a token or principal, and revokes it at all replicas. */
export function revoke(): void {
  const kind = choiceInput(
    { principal: 'Everything a principal was given', token: 'One token' },
    'principal',
  );
  // A browser cuts off what is longer, and what is left may be the id of another principal.
  const target = textInput({ autocomplete: 'off', maxlength: `${LONGEST_ID}` });
  const duration = durationInput(['1h', '24h', '7d', '30d'], '24h');
  kind.addEventListener('input', () => {
    target.type = kind.value === 'token' ? 'password' : 'text';
    target.maxLength = kind.value === 'token' ? 16_384 : LONGEST_ID;
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
      await ask(`revocations/${kind}s/${encodeURIComponent(target)}?${reasonQuery(values)}`, 'DELETE');
      return `${target} is no longer revoked.`;
    },
  });
}
