import { expect, it } from 'vitest';
import { readCost } from '../../../../src/gateway/response-cost/response-cost.ts';
import { FieldSection } from '../../../../src/http/message/head/field-section.ts';
import type { ResponseHead } from '../../../../src/http/message/head/response-head.ts';
import type { RequestContext } from '../../../../src/stages/request-context.ts';

const CHUNK = Buffer.alloc(1_000_000);

it.each([
  [1, 1_999_000_000, 1_999_000_000],
  [1, 2_001_000_000, 2_000_000_000],
  [1, 5_000_000_000, 2_000_000_000],
  [1_024, 5_000_000_000, 4_882_813],
])(
  'at a point for each %i bytes, %i bytes cost %i points: no more than a limit can have',
  (bytes, length, points) => {
    const settlement = { settle: { kind: 'bytes', bytes }, refundOn: new Set() };
    const request = {
      operation: { settlement },
      charged: { outcome: 'admitted' },
    } as unknown as RequestContext;
    const head = { status: 200, fields: FieldSection.of([]) } as unknown as ResponseHead;
    const cost = readCost(request, head);
    for (let sent = 0; sent < length; sent += CHUNK.length) cost?.onData(CHUNK, false);
    cost?.onEnd(undefined);
    expect(cost?.finish()).toEqual({ points, problem: undefined });
  },
);
