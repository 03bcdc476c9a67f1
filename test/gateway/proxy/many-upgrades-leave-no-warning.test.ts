import { afterEach, expect, it } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw, untilClosed } from '../../fixtures/raw.ts';

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';
const COUNT = 50;

let gateway: TestGateway;
afterEach(() => gateway.close());

it.each([
  ['that are served without it', `${HEAD}Connection: Upgrade\r\nUpgrade: h2c\r\n`, 200],
  ['that are refused', 'Host: weir\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n', 401],
  [
    'in one packet with their bodies',
    `${HEAD}Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 4\r\n`,
    200,
  ],
])(
  'many wishes for another protocol on one connection %s leave no listener behind',
  async (_, fields, status) => {
    gateway = await startGateway({ limits: PLENTY });
    const warnings: string[] = [];
    const note = (warning: Error) => warnings.push(`${warning.name}: ${warning.message}`);
    process.on('warning', note);
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    const body = fields.includes('Content-Length') ? 'body' : '';
    socket.write(`POST /v3/things HTTP/1.1\r\n${fields}\r\n${body}`.repeat(COUNT));
    socket.write(`GET /v3/things HTTP/1.1\r\n${HEAD}Connection: close\r\n\r\n`);
    expect((await answer).statuses).toEqual([...Array(COUNT).fill(status), 200]);
    await new Promise(setImmediate);
    process.off('warning', note);
    expect(warnings).toEqual([]);
  },
);
