import { once } from 'node:events';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

let gateway: TestGateway;
afterEach(() => gateway.close());

it('server-sent events arrive one by one, and their header before the first', async () => {
  let events: ServerResponse | undefined;
  const upstream = await startUpstream((_request, response) => {
    events = response;
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.flushHeaders();
  });
  gateway = await startGateway({ upstream });
  const listening = request(`${gateway.url}/v3/things`, {
    headers: { Authorization: 'Bearer service' },
  }).end();
  const [answer] = (await once(listening, 'response')) as [IncomingMessage];
  expect(answer.headers['content-type']).toBe('text/event-stream');
  for (const event of ['data: one\n\n', 'data: two\n\n', 'data: three\n\n']) {
    events?.write(event);
    expect(String((await once(answer, 'data'))[0])).toBe(event);
  }
  listening.destroy();
  if (events !== undefined && !events.closed) await once(events, 'close');
});
