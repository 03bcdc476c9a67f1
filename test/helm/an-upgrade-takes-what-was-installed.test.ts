import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import { expect, it } from 'vitest';
import { isMapping } from '../../src/config/reader/schema-node.ts';
import { CASES, renderText } from '../fixtures/helm.ts';
import { describeChart } from './describe-chart.ts';

/** The values of earlier charts. */
const EARLIER = 'test/helm/values';

/** Paths of the keys that `newer` has and `older` lacks, the topmost ones only. */
function addedKeys(newer: unknown, older: unknown, path: readonly string[] = []): readonly string[] {
  if (!isMapping(newer) || !isMapping(older)) return [];
  return Object.entries(newer).flatMap(([key, value]) =>
    Object.hasOwn(older, key) ? addedKeys(value, older[key], [...path, key]) : [[...path, key].join('.')],
  );
}

const readYaml = (file: string) => load(readFileSync(file, 'utf8'));

describeChart('an upgrade with the values of an earlier chart (--reuse-values)', () => {
  it.each(readdirSync(EARLIER))('%s: renders, although it lacks every value that is new', (file) => {
    const added = addedKeys(readYaml('helm/weir/values.yaml'), readYaml(`${EARLIER}/${file}`));
    expect(added.length).toBeGreaterThan(0);
    const removed = added.map((path) => `${path}=null`);
    for (const values of CASES) expect(renderText({ values, set: removed })).toContain('kind: Deployment');
  });

  it.each(readdirSync(EARLIER))('%s: watches the ConfigMaps all the same', (file) => {
    const added = addedKeys(readYaml('helm/weir/values.yaml'), readYaml(`${EARLIER}/${file}`));
    expect(renderText({ set: added.map((path) => `${path}=null`) })).toContain('kind: RoleBinding');
  });
});

describeChart('rendering', () => {
  it.each(CASES)('%s: helm has nothing to warn about', (values) => {
    const args = ['template', 'weir', 'helm/weir'];
    if (values !== 'defaults') args.push('--values', `helm/weir/ci/${values}`);
    expect(spawnSync('helm', args, { encoding: 'utf8' }).stderr).toBe('');
  });
});
