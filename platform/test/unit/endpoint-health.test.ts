import { describe, expect, test } from 'vitest';
import { type EndpointState, nextState } from '../../src/deliveries/endpoint-health.ts';

const SETTINGS = { pauseAfterSeconds: 3600, probeSeconds: 60 };
const HEALTHY: EndpointState = { status: 'Active', paused_reason: null, failing_since: null, probe_at: null };
const at = (seconds: number) => new Date(seconds * 1000);
const fail = (state: EndpointState, seconds: number) => nextState(state, 'failed', at(seconds), SETTINGS);

describe('a subscription whose endpoint fails', () => {
  test('stays active however many attempts fail, until they have failed for the whole time', () => {
    let state = HEALTHY;
    for (let second = 0; second < 3600; second++) state = fail(state, second);
    expect(state).toEqual({ ...HEALTHY, failing_since: at(0) });
    expect(fail(state, 3600)).toEqual({
      status: 'Paused',
      paused_reason: 'EndpointFailing',
      failing_since: at(0),
      probe_at: at(3660),
    });
  });

  test('resets after one success', () => {
    const state = nextState(fail(HEALTHY, 0), 'delivered', at(3599), SETTINGS);
    expect(state).toEqual(HEALTHY);
    expect(fail(state, 3700).status).toBe('Active');
  });

  test('is probed again and again while it is paused, and resumes at the first success', () => {
    const paused = fail(fail(HEALTHY, 0), 3600);
    const probed = fail(paused, 3700);
    expect([probed.status, probed.probe_at]).toEqual(['Paused', at(3760)]);
    expect(nextState(probed, 'delivered', at(3800), SETTINGS)).toEqual(HEALTHY);
  });

  test('is paused at once by 410, and then resumed by its owner alone', () => {
    const gone = nextState(HEALTHY, 'gone', at(0), SETTINGS);
    expect(gone).toMatchObject({ status: 'Paused', paused_reason: 'EndpointGone', probe_at: null });
    expect(nextState(gone, 'delivered', at(1), SETTINGS).status).toBe('Paused');
  });

  test('stays paused on request, regardless of the result of an attempt in progress', () => {
    const byRequest = { ...HEALTHY, status: 'Paused', paused_reason: 'ByRequest' };
    for (const result of ['delivered', 'failed', 'gone'] as const)
      expect(nextState(byRequest, result, at(1), SETTINGS)).toMatchObject({
        status: 'Paused',
        paused_reason: 'ByRequest',
      });
  });
});
