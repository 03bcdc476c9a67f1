import type { ShownBlock } from '../../../admin/facts/block-api.ts';
import { AdminApiError, ask } from '../api.ts';
import { type OwnerView, poll } from '../owner.ts';
import { byId, element, setText } from '../widgets/dom.ts';
import { blockLines } from './block-owner.ts';

/** Whether an id of the page of an address is a range. A /64 of IPv6 is one client. */
export function isRange(id: string): boolean {
  return id.includes('/') && !id.endsWith('/64');
}

/** The page of a range of addresses, which can be blocked. Nothing is counted for a range. */
export function openRange(id: string): OwnerView {
  const problem = element('p', { class: 'problem', role: 'alert', hidden: true });
  const blocks = blockLines('address', id);
  byId('owner').replaceChildren(
    element('a', { href: '#/', class: 'back' }, '← Fleet'),
    element(
      'h1',
      {},
      element('span', { class: 'muted' }, 'Range of addresses '),
      element('span', { class: 'id' }, id),
    ),
    element('p', { class: 'muted' }, 'The limits and the usage of its addresses are on their own pages.'),
    problem,
    blocks.node,
  );
  const reading = poll(async () => {
    try {
      const listed = (await ask('blocks')) as readonly ShownBlock[];
      blocks.show(
        listed.filter((one) => one.scope === 'address' && one.id === id),
        true,
      );
      blocks.node.hidden = false;
      problem.hidden = true;
    } catch (error) {
      setText(problem, error instanceof AdminApiError ? error.message : 'The gateway does not answer.');
      problem.hidden = false;
    }
  });
  return { ...reading, showRefusals() {}, showChanges() {} };
}
