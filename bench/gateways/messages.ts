import { PLAIN_PROXY } from '../contestants/all.ts';
import type { Contestant } from '../contestants/contestant.ts';
import type { Bench } from '../lab/bench.ts';
import { costOf } from '../lab/turns.ts';
import { BODY_BYTES, bodyPath, POST_PATH } from '../load/upstream.ts';
import type { WrkOptions } from '../load/wrk.ts';
import { among, type Side, type Terms, warmUpSeconds } from './lineup.ts';
import type { Results } from './results.ts';

/** Kinds of messages that are not small GETs. */
const MESSAGES: Readonly<Record<string, Partial<WrkOptions>>> = Object.fromEntries([
  ...BODY_BYTES.map((bytes) => [`GET ${bytes / 1024} KiB`, { path: bodyPath(bytes) }] as const),
  ...BODY_BYTES.map((bytes) => [`POST ${bytes / 1024} KiB`, { path: POST_PATH, bodyBytes: bytes }] as const),
]);
/** Few, so that bodies of 1 MiB are under way and not queues of them. */
const MESSAGE_CONNECTIONS = 16;

/** What large bodies, uploads over kept connections and a TLS upstream cost the plain proxy and Weir. */
export async function measureMessages(bench: Bench): Promise<NonNullable<Results['messages']>> {
  const takesPart = ({ name }: Contestant) => name === PLAIN_PROXY.name || name.startsWith('Weir');
  const { tlsPort, caFile } = await bench.upstream();
  const tls = { takesPart, upstreamPort: tlsPort, upstreamCaFile: caFile };
  return {
    ...(await measureKinds(bench, 'messages', { takesPart }, MESSAGES)),
    ...(await measureKinds(bench, 'messages, TLS', tls, { 'GET, TLS upstream': {} })),
  };
}

function measureKinds(bench: Bench, name: string, terms: Terms, kinds: typeof MESSAGES) {
  return among(bench, name, terms, async (sides) => {
    const results: Record<string, Record<string, number[]>> = {};
    for (const [kind, options] of Object.entries(kinds)) {
      bench.say(kind);
      const measure = async ({ running }: Side, seconds = bench.seconds) => {
        const load = () =>
          bench.strictLoad(running, { ...options, seconds, connections: MESSAGE_CONNECTIONS });
        return Math.round((await costOf(running, load)).gatewayUs);
      };
      // V8 compiles what runs often, and few large bodies pass in a second.
      for (const side of sides) await measure(side, 3 * warmUpSeconds(bench));
      results[kind] = await bench.inTurn(sides, measure);
    }
    return results;
  });
}
