import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { load } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Settings } from '../../src/config/settings/settings.ts';
import { createMetrics } from '../../src/observe/metrics/metrics.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { only, render } from '../fixtures/helm.ts';
import { describeChart } from './describe-chart.ts';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly runbook: string };
}

const RULES = 'helm/weir/rules/alerts.yaml';
const { groups } = load(readFileSync(RULES, 'utf8')) as { groups: readonly { rules: readonly Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const dashboard = readFileSync('helm/weir/dashboards/weir.json', 'utf8');
const exprs = [
  ...rules.map(({ expr }) => expr),
  ...[...dashboard.matchAll(/"(?:expr|query|definition)": "(.*)"/g)].map(([, one = '']) => one),
];

describe('the metrics that the dashboard and the alerts read', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  const named = (text: string) => new Set(text.match(/\b(weir|nodejs|process)_[a-z0-9_]+/g));

  it('are all served by the admin port', async () => {
    const metrics = `${await gateway.metrics()}${await everyMetric()}`;
    const served = new Set(
      [...metrics.matchAll(/^# TYPE (\S+) (\S+)/gm)].flatMap(([, name = '', type]) =>
        type === 'histogram' ? ['_bucket', '_sum', '_count'].map((suffix) => name + suffix) : [name],
      ),
    );
    const wanted = named(exprs.join('\n'));
    expect(wanted.size).toBeGreaterThan(20);
    expect([...wanted].filter((name) => !served.has(name))).toEqual([]);
  });
});

it("metrics that other programs have too are only the gateways' own", () => {
  const shared = exprs.filter((expr) => /\b(nodejs|process)_/.test(expr));
  expect(shared.length).toBeGreaterThan(2);
  for (const expr of shared)
    expect(expr).toContain(' and on (namespace, job, pod, instance) weir_build_info');
});

it('every metric of Weir is described in docs/metrics.md', async () => {
  const described = readFileSync('docs/metrics.md', 'utf8').replace(
    /(weir_)\{([a-z,]+)\}(\w+)/g,
    (_, before: string, names: string, after: string) =>
      names
        .split(',')
        .map((name) => before + name + after)
        .join(' '),
  );
  const served = [...(await everyMetric()).matchAll(/^# TYPE (weir_\w+)/gm)].map(([, name = '']) => name);
  expect(served.length).toBeGreaterThan(25);
  expect(served.filter((name) => !described.includes(name))).toEqual([]);
});

it('a refused reload of any file is in an alert and on the dashboard', async () => {
  const gauges = (await everyMetric()).match(/^weir_\w+_last_reload_successful/gm) ?? [];
  expect(gauges.length).toBeGreaterThan(4);
  const alerts = rules.map(({ expr }) => expr).join('\n');
  for (const gauge of gauges) {
    expect(alerts).toContain(gauge);
    expect(dashboard).toContain(gauge);
  }
});

it('every alert has its section in the guide for operators', () => {
  const guide = readFileSync('docs/operating/alerts.md', 'utf8');
  for (const { alert, annotations } of rules) {
    expect(annotations.runbook).toBe(`docs/operating/alerts.md#${alert.toLowerCase()}`);
    expect(guide).toMatch(new RegExp(`^#+ ${alert}$`, 'm'));
  }
});

describeChart('the metrics', () => {
  it('follow the conventions of Prometheus', async () => {
    const input = await everyMetric();
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
      input,
      encoding: 'utf8',
    });
    expect(`${stdout}${stderr}`).toBe('');
    expect(status).toBe(0);
  });
});

/** Also those that only some settings show, each with a value. */
async function everyMetric(): Promise<string> {
  const identity: Settings['identity'] = { kind: 'static', file: 'identities.yaml' };
  const metrics = createMetrics([identity]);
  metrics.showKeysAge(() => 0);
  metrics.revocationsSubscribed(true);
  metrics.showLiveLimits(
    () => 1,
    () => 1_800_000_000_000,
  );
  metrics.showJournal(
    () => 0,
    () => false,
  );
  metrics.certificateInUse('listen', 1_800_000_000_000);
  metrics.limitsInForce('0123456789ab');
  metrics.providerCalled('jwks', 'answered', 1);
  metrics.breakerChanged('primary', 'open');
  metrics.settingChecked('primary', 'min-replicas', undefined);
  metrics.watchConnected('limits', true);
  metrics.showNotifications(
    () => 1,
    () => true,
  );
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

  it('are valid, and so is their file as it is, without Helm', () => {
    for (const file of ['rules.yaml', resolve(RULES)]) {
      const { status, stdout } = promtool('check', 'rules', file);
      expect(stdout).toContain(`SUCCESS: ${rules.length} rules found`);
      expect(status).toBe(0);
    }
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
