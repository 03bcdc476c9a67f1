import { expect, it } from 'vitest';
import { newCertificate } from '../../fixtures/certificate.ts';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway } from '../../fixtures/gateway.ts';
import { NGINX_VERDICTS, NGINX_VERSION } from '../../fixtures/hostile/raw/nginx-verdicts.ts';
import { RAW_REQUESTS, startCountingUpstream, verdictsOf } from '../../fixtures/hostile/raw/verdict.ts';
import { nginxVersion, startNginx } from '../../fixtures/nginx.ts';
import { type RawAnswer, sendRaw, sendRawToNode } from '../../fixtures/raw.ts';
import { skipReason } from '../../fixtures/skip-reason.ts';

/** A message that stops short is answered after its time-out; on a busy machine no other message takes that long. */
const TIMES = { keepAliveTimeoutMs: 200, headersTimeoutMs: 5_000, bodyTimeoutMs: 5_000 };

const differing = new Map(
  NGINX_VERDICTS.flatMap(({ verdict, messages }) => messages.map((name) => [name, verdict] as const)),
);

/** One line for each message, so that a difference shows which one it is. */
const table = (verdicts: readonly (string | undefined)[]) =>
  RAW_REQUESTS.map(({ name }, index) => `${name}: ${verdicts[index]}`);

async function verdictsBehindGateway(
  listen: Readonly<Record<string, unknown>>,
  send: (url: string, bytes: string) => Promise<RawAnswer> = sendRaw,
): Promise<readonly string[]> {
  const upstream = await startCountingUpstream();
  const gateway = await startGateway({
    upstream,
    limits: PLENTY,
    settings: { listen: { host: '127.0.0.1', port: 0, ...TIMES, ...listen } },
  });
  const verdicts = await verdictsOf(gateway.url, upstream, send);
  await gateway.close();
  return verdicts;
}

// The gateways of a test are asked at once, because each takes as long as its time-outs.
it.each([['without TLS'], ['over TLS']])(
  'each raw request has the verdict that is written beside it, whether the edge or Node reads it first: %s',
  async (way) => {
    const tls = way === 'over TLS' ? { tls: newCertificate() } : {};
    // A request that closes its connection is not for the edge, and most of the corpus would be.
    const open = (bytes: string) => bytes.replaceAll('Connection: close\r\n', '');
    const [atEdge, byNode, openAtEdge, openAtNode] = await Promise.all([
      verdictsBehindGateway(tls),
      verdictsBehindGateway(tls, sendRawToNode),
      verdictsBehindGateway(tls, (url, bytes) => sendRaw(url, open(bytes))),
      verdictsBehindGateway(tls, (url, bytes) => sendRawToNode(url, open(bytes))),
    ]);
    const written = table(RAW_REQUESTS.map(({ ours }) => ours));
    expect(table(atEdge)).toEqual(written);
    expect(table(byNode)).toEqual(written);
    expect(table(openAtEdge)).toEqual(table(openAtNode));
  },
);

it('nginx differs only in the documented cases', async ({ skip }) => {
  const version = nginxVersion();
  if (version !== NGINX_VERSION) {
    const reason = `the verdicts come from nginx ${NGINX_VERSION}, and this machine has ${version ?? 'no nginx'}`;
    skip(skipReason(reason));
    return;
  }
  const upstream = await startCountingUpstream();
  const nginx = await startNginx(upstream.url);
  const verdicts = await verdictsOf(nginx.url, upstream);
  await nginx.close();
  await upstream.close();
  expect(table(verdicts)).toEqual(table(RAW_REQUESTS.map(({ name, ours }) => differing.get(name) ?? ours)));
});

it('every verdict of nginx is about one message, and differs from the verdict of Weir', () => {
  const ours = new Map(RAW_REQUESTS.map((message) => [message.name, message.ours]));
  expect(ours.size).toBe(RAW_REQUESTS.length);
  for (const [name, verdict] of differing) expect([undefined, verdict], name).not.toContain(ours.get(name));
});
