import { expect, it, onTestFinished } from 'vitest';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { DECISIONS, PROTOCOLS } from '../fixtures/decisions.ts';
import { startGateway } from '../fixtures/gateway.ts';
import { startRecipe } from '../fixtures/recipes.ts';
import { runWeirHere } from '../fixtures/run-here.ts';
import { startWeir } from '../fixtures/weir-process.ts';

const OFF = { listen: { port: 'off' }, decisions: DECISIONS, log: { level: 'info' } };

it.each(Object.entries(PROTOCOLS))(
  'with listen off, a gateway has no port for clients and decides: %s',
  async (_, ask) => {
    const gateway = await startGateway({ settings: OFF });
    onTestFinished(() => gateway.close());
    expect(gateway.url).toBe('');
    const asked = () => ask(gateway.decisionsUrl, 'GET', '/v3/things', { Authorization: 'Bearer service' });
    expect((await asked()).headers.ratelimit).toContain('"account-read";r=19;');
    expect((await asked()).headers.ratelimit).toContain('"account-read";r=18;');
    expect((await fetch(`${gateway.adminUrl}/readyz`)).status).toBe(200);
    expect(gateway.upstream.seen).toEqual([]);
    const listening = gateway.lines
      .map((line) => JSON.parse(line))
      .find(({ msg }) => msg === 'weir is listening');
    expect([listening.url, listening.upstream]).toEqual([undefined, undefined]);
  },
);

it('WEIR_PORT=off does the same, and the process ends at a signal', async () => {
  const settings = { listen: { maxConnections: 100 }, decisions: DECISIONS };
  const weir = await startWeir({ upstreamUrl: 'http://127.0.0.1:1', settings }, { WEIR_PORT: 'off' });
  expect(weir.url).toBeUndefined();
  await weir.close();
  expect(weir.process.exitCode).toBe(0);
});

it('weir check tries no upstream, and warns of none', async () => {
  const config = await writeConfiguration({
    upstreamUrl: 'http://127.0.0.1:1',
    settings: { ...OFF, upstream: {} },
  });
  const { stdout, stderr, code } = await runWeirHere(['check', '--connect', '--config', config]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).not.toContain('upstream');
});

it('the recipes for proxies open no port for clients', async () => {
  const weir = await startRecipe('proxies', { env: { WEIR_PORT: '' } });
  onTestFinished(() => weir.close());
  expect([weir.url, weir.decisionsUrl]).toEqual(['', expect.stringMatching('^http://127.0.0.1:')]);
});
