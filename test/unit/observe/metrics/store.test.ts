import { expect, test } from 'vitest';
import { createMetrics } from '../../../../src/observe/metrics/metrics.ts';

test("the store's events are in /metrics", async () => {
  const metrics = createMetrics([{ kind: 'static', file: 'identities.yaml' }]);
  metrics.uncounted('deadline', 7);
  metrics.answeredLate(3);
  metrics.unanswered(5);
  metrics.deniedFromMemory();
  metrics.called(4, 1500, 0);
  metrics.breakerChanged('primary', 'open');
  metrics.connectionFailed('auth', 'WRONGPASS');
  metrics.settingChecked('primary', 'maxmemory-policy', 'it evicts');
  metrics.settingChecked('primary', 'min-replicas', undefined);
  const text = await metrics.text();
  for (const line of [
    'weir_points_uncounted_total{reason="deadline"} 7',
    'weir_points_late_total 3',
    'weir_points_unanswered_total 5',
    'weir_denials_remembered_total 1',
    'weir_store_call_decisions_sum 4',
    'weir_store_call_duration_seconds_sum 0.0015',
    'weir_store_breaker_state{route="primary"} 2',
    'weir_store_connection_failures_total{reason="auth"} 1',
    'weir_store_setting_unsafe{route="primary",setting="maxmemory-policy"} 1',
    'weir_store_setting_unsafe{route="primary",setting="min-replicas"} 0',
  ]) {
    expect(text).toContain(line);
  }
});
