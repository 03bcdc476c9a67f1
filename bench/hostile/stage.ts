import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../test/fixtures/free-port.ts';
import { type RawServer, startRawServer } from '../../test/fixtures/raw-server.ts';
import { type Running, runningOf } from '../contestants/contestant.ts';
import { startNginx } from '../contestants/nginx.ts';
import { weir } from '../contestants/weir.ts';
import { Bench } from '../lab/bench.ts';
import type { Cores } from '../lab/machine.ts';
import { MessageReader } from '../load/client.ts';
import type { HostileInput } from './inputs.ts';

/** The gateway, and nginx if it was asked for, in front of one upstream. */
export interface Stage {
  readonly weir: Running;
  readonly decisionsPort: number;
  readonly nginx: Running | undefined;
  /** Lets the upstream answer as this input has it. */
  prepare(input: HostileInput): void;
  stop(): Promise<void>;
}

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"data":[]}';

export async function startStage(cores: Cores | undefined, withNginx: boolean): Promise<Stage> {
  const bench = new Bench({ sharesCores: cores === undefined });
  const openapi = join(bench.folder, 'openapi.json');
  writeFileSync(openapi, JSON.stringify(DOCUMENT));
  let response: HostileInput['response'];
  let serial = 0;
  const upstream = await startRawServer((socket) => {
    const reader = new MessageReader();
    socket.setEncoding('latin1').on('data', (chunk) => {
      for (const _ of reader.push(String(chunk))) socket.write(response?.(serial++) ?? ANSWER, 'latin1');
    });
  });
  bench.endWith({ stop: () => upstream.close() });
  const decisionsPort = await freePort();
  const settings = {
    listen: { trustedProxies: ['127.0.0.1'], maxEventLoopDelayMs: 0 },
    cors: { origins: ['https://app.example.com'] },
    decisions: { port: decisionsPort },
    operations: { openapi },
  };
  const terms = { upstreamPort: Number(new URL(upstream.url).port), redisPort: 0, accounts: 1 };
  const gateway = await bench.start(weir('memory', { settings }), 'weir', terms);
  const nginx = withNginx ? await startNginxBefore(upstream, bench.folder, cores?.gateway) : undefined;
  if (nginx !== undefined) bench.endWith(nginx);
  return {
    weir: gateway,
    decisionsPort,
    nginx,
    prepare(input) {
      response = input.response;
    },
    stop: () => bench.end(),
  };
}

/** With buffers as large as Weir's limits, so that it reads what Weir reads. */
async function startNginxBefore(
  { url }: RawServer,
  folder: string,
  cores: string | undefined,
): Promise<Running> {
  const port = await freePort();
  const program = await startNginx({
    folder,
    port,
    cores,
    http: `upstream platform { server ${new URL(url).host}; keepalive 256; }
      large_client_header_buffers 4 32k; client_body_buffer_size 1m; client_max_body_size 16m;
      proxy_buffer_size 32k; proxy_buffers 8 32k; proxy_busy_buffers_size 64k;`,
    location: 'proxy_pass http://platform; proxy_http_version 1.1; proxy_set_header Connection "";',
  });
  return runningOf(program, port);
}

const query = (name: string, schema: object, more: object = {}) => ({ name, in: 'query', schema, ...more });
const kind = (index: number) => ({ type: 'object', required: [`kind${index}`] });
const responses = { 200: { description: 'ok' } };

/** A POST whose body is validated. */
const validated = (schema: object) => ({
  post: {
    'x-weir': { validate: 'body' },
    requestBody: { required: true, content: { 'application/json': { schema } } },
    responses,
  },
});

/** What the inputs are validated against. */
const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'hostile', version: '1' },
  paths: {
    '/things': {
      get: {
        parameters: [
          query('id', { type: 'array', maxItems: 10, items: { type: 'integer' } }),
          query('name', { type: 'string', pattern: '^(a|aa)+$' }),
          query(
            'filter',
            { type: 'object', additionalProperties: { type: 'integer' } },
            { style: 'deepObject' },
          ),
        ],
        responses,
      },
      post: { responses },
    },
    '/one-of': validated({ type: 'array', items: { oneOf: [1, 2, 3, 4, 5, 6].map(kind) } }),
    '/deep': validated({ $ref: '#/components/schemas/Deep' }),
    '/numbers': validated({ type: 'array', items: { type: 'integer' } }),
    '/unique': validated({ type: 'array', uniqueItems: true }),
  },
  components: { schemas: { Deep: { type: 'array', items: { $ref: '#/components/schemas/Deep' } } } },
};
