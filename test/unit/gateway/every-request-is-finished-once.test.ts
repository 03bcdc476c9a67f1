import { setImmediate } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { Entrance, type PortDependencies, type PortRequest } from '../../../src/gateway/entrance.ts';
import { TrustedProxies } from '../../../src/http/message/fields/forwarded.ts';
import { closeWithin, createServer } from '../../../src/http/server/server.ts';
import { respond } from '../../../src/stages/respond.ts';
import { connectRaw } from '../../fixtures/raw.ts';
import { LIMITS } from '../../fixtures/read-connection.ts';

it('a request that fails after its client has left is counted', async () => {
  const failures: unknown[] = [];
  const finished: PortRequest[] = [];
  const asked: PortRequest[] = [];
  const shared = {
    trusted: new TrustedProxies([]),
    cors: { origins: [] },
    isDraining: () => false,
    log: { error: (line: unknown) => failures.push(line) },
    observer: { requestFinished: (request: PortRequest) => finished.push(request) },
  } as unknown as PortDependencies;
  let fail = (_: Error) => {};
  const { take } = new Entrance({
    stages: [
      (request) => {
        asked.push(request);
        request.chargeAskedMs = 0;
        return new Promise<never>((_, reject) => {
          fail = reject;
        });
      },
    ],
    shared,
    failure: 'failed',
    begin() {},
    refuse: (request, refusal) => respond(request, refusal, 'http://weir'),
  });
  const server = createServer(LIMITS, { baseUrl: 'http://weir', lines: '' });
  server.connections.onExchange = take;
  const url = await server.app.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => closeWithin(server, 0));

  const client = await connectRaw(url);
  client.write('GET / HTTP/1.1\r\nHost: weir\r\n\r\n');
  await expect.poll(() => asked.length).toBe(1);
  client.resetAndDestroy();
  await expect.poll(() => asked[0]?.source.isClosed).toBe(true);
  await setImmediate();
  expect(finished).toEqual([]);
  fail(new Error('the stage broke'));
  await expect.poll(() => finished.length).toBe(1);
  expect(finished).toEqual(asked);
  expect(failures).toHaveLength(1);
});
