import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { expiredCertificate, newCertificate } from '../fixtures/certificate.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { startGateway } from '../fixtures/gateway.ts';
import { runWeirHere } from '../fixtures/run-here.ts';

it('usage and limit ask the gateway of weir.yaml in this folder, and top reports that there is no gateway', async () => {
  const gateway = await startGateway();
  onTestFinished(() => gateway.close());
  const admin = { host: '127.0.0.1', port: Number(new URL(gateway.adminUrl).port) };
  const file = await writeConfiguration({ upstreamUrl: gateway.upstream.url, settings: { admin } });
  const empty = await mkdtemp(join(tmpdir(), 'weir-'));
  const here = dirname(file);
  const usage = await runWeirHere(['usage', 'acct_1', '--json'], {}, here);
  const limits = await runWeirHere(['limit', 'list', '--json'], {}, here);
  const lost = await runWeirHere(['top', '--json'], {}, empty);
  expect(usage).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('"id": "acct_1"') });
  expect(limits).toEqual({ code: 0, stderr: '', stdout: '[]\n' });
  expect(lost).toEqual({
    code: 1,
    stdout: '',
    stderr: 'Name a gateway with --url or with --config: there is no weir.yaml in this folder.\n',
  });
});

it('commands send the token that the gateway has, which comes before its file', async () => {
  const token = 'an-admin-token-of-a-test';
  const gateway = await startGateway({ settings: { admin: { host: '127.0.0.1', port: 0, token } } });
  onTestFinished(() => gateway.close());
  const port = Number(new URL(gateway.adminUrl).port);
  const list = async (sent: string) => {
    const admin = { host: '127.0.0.1', port, token: sent, tokenFile: 'missing' };
    const file = await writeConfiguration({ upstreamUrl: gateway.upstream.url, settings: { admin } });
    return runWeirHere(['limit', 'list', '--json', '--config', file]);
  };
  expect(await list(token)).toEqual({ code: 0, stderr: '', stdout: '[]\n' });
  expect((await list(`${token}-2`)).stderr).toContain('The token came from WEIR_ADMIN_TOKEN or admin.token.');
});

it('health does not depend on files that were replaced since the gateway started', async () => {
  const inUse = newCertificate();
  const gateway = await startGateway({ settings: { admin: { host: '127.0.0.1', port: 0, tls: inUse } } });
  onTestFinished(() => gateway.close());
  const port = Number(new URL(gateway.adminUrl).port);
  const health = async (admin: object) => {
    const settings = { admin: { host: '127.0.0.1', port, ...admin } };
    const file = await writeConfiguration({ upstreamUrl: gateway.upstream.url, settings });
    return runWeirHere(['health', '--config', file]);
  };
  const alive = { code: 0, stdout: '', stderr: '' };
  const missing = join(dirname(inUse.certFile), 'missing.pem');
  expect(await health({ tls: expiredCertificate() })).toEqual(alive);
  expect(await health({ tls: { certFile: missing, keyFile: missing } })).toEqual(alive);
  expect(await health({ tls: inUse, tokenFile: missing })).toEqual(alive);
  expect(await health({ tls: {} })).toMatchObject({ code: 1, stderr: expect.stringContaining('admin.tls') });
});

it('health follows the admin port of the file, and fails once the gateway has ended', async () => {
  const gateway = await startGateway();
  const admin = { host: '127.0.0.1', port: Number(new URL(gateway.adminUrl).port) };
  const file = await writeConfiguration({ upstreamUrl: gateway.upstream.url, settings: { admin } });
  const health = () => runWeirHere(['health', '--config', file]);
  expect(await health()).toEqual({ code: 0, stdout: '', stderr: '' });
  await gateway.close();
  expect(await health()).toMatchObject({ code: 1, stderr: expect.stringContaining('does not answer') });
});
