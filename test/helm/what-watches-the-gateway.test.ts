import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { load } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMetrics } from '../../src/admin/metrics/metrics.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { only, render } from '../fixtures/helm.ts';
import { describeChart } from './describe-chart.ts';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly runbook: string };
}

const { rules } = load(readFileSync('helm/weir/rules/alerts.yaml', 'utf8')) as { rules: readonly Rule[] };
const dashboard = readFileSync('helm/weir/dashboards/weir.json', 'utf8');

describe('the metrics that the dashboard and the alerts read', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  const named = (text: string) => new Set(text.match(/\b(weir|nodejs|process)_[a-z0-9_]+/g));

  it('are all served by the admin port', async () => {
    const metrics = `${await gateway.metrics()}${await shownWhereTheyApply()}`;
    const served = new Set(
      [...metrics.matchAll(/^# TYPE (\S+) (\S+)/gm)].flatMap(([, name = '', type]) =>
        type === 'histogram' ? ['_bucket', '_sum', '_count'].map((suffix) => name + suffix) : [name],
      ),
    );
    const exprs = [
      ...rules.map(({ expr }) => expr),
      ...dashboard.matchAll(/"(?:expr|query|definition)": "(.*)"/g),
    ].map((one) => (typeof one === 'string' ? one : (one[1] ?? '')));
    const wanted = named(exprs.join('\n'));
    expect(wanted.size).toBeGreaterThan(20);
    expect([...wanted].filter((name) => !served.has(name))).toEqual([]);
  });
});

it('every alert has its section in the guide for operators', () => {
  const guide = readFileSync('docs/operating.md', 'utf8');
  for (const { alert, annotations } of rules) {
    expect(annotations.runbook).toBe(`docs/operating.md#${alert.toLowerCase()}`);
    expect(guide).toMatch(new RegExp(`^#+ ${alert}$`, 'm'));
  }
});

/** Metrics that a gateway shows once it has fetched keys, and hears of revocations through a shared store. */
async function shownWhereTheyApply(): Promise<string> {
  const metrics = createMetrics();
  metrics.keysFetched(0);
  metrics.revocationsSubscribed(true);
  return metrics.text();
}

describeChart('the rules that the chart renders', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'weir-rules-'));
    const rendered = only(render({ set: ['metrics.prometheusRule.enabled=true'] }), 'PrometheusRule');
    writeFileSync(join(folder, 'rules.yaml'), JSON.stringify(rendered.spec));
    writeFileSync(join(folder, 'test.yaml'), readFileSync(resolve('test/helm/alerts.test.yaml')));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const promtool = (...args: string[]) => spawnSync('promtool', args, { cwd: folder, encoding: 'utf8' });

  it('are valid', () => {
    const { status, stdout } = promtool('check', 'rules', 'rules.yaml');
    expect(stdout).toContain(`SUCCESS: ${rules.length} rules found`);
    expect(status).toBe(0);
  });

  it('fire when they should, and not before', () => {
    const { status, stdout, stderr } = promtool('test', 'rules', 'test.yaml');
    expect(`${stdout}${stderr}`).toContain('SUCCESS');
    expect(status).toBe(0);
  });

  it('are each tested', () => {
    const tests = readFileSync('test/helm/alerts.test.yaml', 'utf8');
    for (const { alert } of rules)
      expect(tests).toMatch(new RegExp(`alertname: ${alert}\\n\\s+exp_alerts:\\n`));
  });

  it('can be left out and added to by values', () => {
    const { spec } = only(render({ values: 'cluster-values.yaml' }), 'PrometheusRule');
    const names = (spec as { groups: readonly { rules: readonly Rule[] }[] }).groups[0]?.rules.map(
      ({ alert }) => alert,
    );
    expect(names).toContain('Mine');
    expect(names).not.toContain('WeirManyRefused');
    expect(names).toContain('WeirDegraded');
  });
});
