import { expect, it } from 'vitest';
import { SeenPrincipals } from '../../../../src/admin/find/seen-principals.ts';
import { UsageBatch } from '../../../../src/observe/usage/batch.ts';
import { requestOf } from '../../../fixtures/request-context.ts';

it('the last 5,000 principals are remembered, one that sends again stays, and memory is bounded', () => {
  const batch = new UsageBatch();
  const seen = new SeenPrincipals(batch);
  const send = (name: string) => {
    const request = requestOf(name);
    const { caller } = request;
    if (caller === undefined) expect.fail('the request has no caller');
    const principal = { ...caller.principal, id: `svc_${name}` };
    batch.requestFinished(Object.assign(request, { caller: { ...caller, principal } }), 0);
  };
  for (let index = 0; index < 20_000; index++) {
    send(`${index}`);
    if (index % 1_000 === 0) send('busy');
    batch.flush();
  }
  const last = Array.from({ length: 5_000 }, (_, index) => `svc_${19_999 - index}`);
  expect(last.filter((id) => !seen.has(id))).toEqual([]);
  expect([seen.has('svc_busy'), seen.has('svc_0'), seen.has('svc_x')]).toEqual([true, false, false]);
  expect(new Set(seen.ids())).toContain('svc_19999');
  expect([...seen.ids()].length).toBeLessThan(10_001);
});
