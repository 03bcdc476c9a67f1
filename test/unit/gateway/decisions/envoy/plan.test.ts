import clusterKeySlot from 'cluster-key-slot';
import { expect, it } from 'vitest';
import { parseDescriptors } from '../../../../../src/config/files/descriptors/parse-descriptors.ts';
import type { RateLimitDescriptor } from '../../../../../src/gateway/decisions/envoy/messages.ts';
import { planOf } from '../../../../../src/gateway/decisions/envoy/plan.ts';

const { domain } = parseDescriptors(
  `
domain: "a {domain}"
descriptors:
  - { key: user, rate_limit: { unit: second, requests_per_unit: 1 } }
  - { key: tenant, rate_limit: { unit: day, requests_per_unit: 1 } }
`,
  'rules.yaml',
);

const descriptor = (key: string, value: string): RateLimitDescriptor => {
  return { entries: [{ key, value }], limit: null, hitsAddend: null, isNegativeHits: false };
};

it('all buckets of a request are in one slot of a Redis Cluster, whatever the domain and the values', () => {
  const descriptors = [
    descriptor('user', '{x}'),
    descriptor('tenant', '}{'),
    descriptor('tenant', 'ü'.repeat(200)),
  ];
  const { buckets } = planOf({ domain: domain.name, descriptors, hitsAddend: 0 }, domain.rules, 'weir');
  expect(buckets).toHaveLength(3);
  expect(new Set(buckets.map(({ key }) => clusterKeySlot(key))).size).toBe(1);
});
