import type { ShownBlock } from '../../../admin/facts/block-api.ts';
import { moment } from '../../format.ts';
import { ask } from '../api.ts';
import type { OwnerScope } from '../owner.ts';
import { element, icon, setText } from '../widgets/dom.ts';
import { durationInput, durationText } from '../widgets/inputs.ts';
import { confirmAction, reasonQuery } from './dialog.ts';
import { SECTIONS } from './set-limit.ts';

const DURATIONS = ['15m', '1h', '8h', '1d', '7d'];

interface BlockTarget {
  readonly scope: OwnerScope | ShownBlock['scope'];
  readonly id: string;
}

/** A Person is blocked as a principal. */
function blockScopeOf({ scope }: BlockTarget): ShownBlock['scope'] {
  return scope === 'person' ? 'principal' : scope;
}

function pathOf(owner: BlockTarget): string {
  return `blocks/${SECTIONS[blockScopeOf(owner)]}/${encodeURIComponent(owner.id)}`;
}

/**
 * Asks for how long, and blocks somebody at all replicas.
 *
 * @param isKnown false for an id that nobody may have, which is blocked all the same
 */
function block(owner: BlockTarget, isKnown: boolean): void {
  const duration = durationInput(DURATIONS, '1h');
  const scope = blockScopeOf(owner);
  confirmAction({
    title: 'Block',
    fields: [{ name: 'for', label: 'For', control: duration }],
    confirm: `Block the ${scope}`,
    isDangerous: true,
    summary: () =>
      `Every request of ${scope} ${owner.id} gets a 429 at every replica, for ${durationText(duration.value)}.${isKnown ? '' : ` Check the id: no request of this ${scope} was seen.`}`,
    async carryOut(values) {
      const force = isKnown ? {} : { force: true };
      const made = (await ask(pathOf(owner), 'PUT', {
        ...Object.fromEntries(values),
        ...force,
      })) as ShownBlock;
      return [`${owner.id} is blocked until ${moment(made.until)}.`, ...(made.notes ?? [])].join(' ');
    },
  });
}

/** Asks why, and ends a block at all replicas. */
export function unblock(owner: BlockTarget): void {
  confirmAction({
    title: 'Unblock',
    fields: [],
    confirm: 'Unblock',
    summary: () => `Requests of ${owner.id} are admitted again, at every replica.`,
    async carryOut(values) {
      const { notes = [] } = (await ask(`${pathOf(owner)}?${reasonQuery(values)}`, 'DELETE')) as ShownBlock;
      return [`${owner.id} is no longer blocked.`, ...notes].join(' ');
    },
  });
}

/** Who is blocked, and the button that blocks. */
export function blockLines(scope: OwnerScope, id: string) {
  let isKnown = true;
  const start = element('button', { type: 'button' }, 'Block…');
  start.addEventListener('click', () => block({ scope, id }, isKnown));
  const node = element('div', { class: 'blocks', hidden: true }, start);
  let key = '';
  return {
    node,
    show(blocks: readonly ShownBlock[], isIdKnown: boolean): void {
      isKnown = isIdKnown;
      setText(start, isKnown ? 'Block…' : 'Block anyway…');
      if (key === JSON.stringify(blocks)) return;
      key = JSON.stringify(blocks);
      const own = blocks.some((one) => one.id === id);
      node.replaceChildren(...blocks.map(blockLine), ...(own ? [] : [start]));
    },
  };
}

function blockLine({ scope, id, until, why, by }: ShownBlock): HTMLElement {
  const end = element('button', { type: 'button', class: 'quiet' }, 'Unblock…');
  end.addEventListener('click', () => unblock({ scope, id }));
  const text = `The ${scope} ${id} is blocked until ${moment(until)}: ${why} (${by})`;
  return element('p', { class: 'problem' }, icon('bad'), ` ${text} `, end);
}
