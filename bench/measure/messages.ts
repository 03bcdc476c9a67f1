import { CONTESTANTS, PLAIN_PROXY } from '../contestants/all.ts';
import { cpuUs } from '../lab/process-table.ts';
import { BODY_BYTES, bodyPath, POST_PATH } from '../load/upstream.ts';
import { PATH, wrk } from '../load/wrk.ts';
import { ACCOUNTS, type Bench, FAR_ABOVE, sceneOf } from './bench.ts';
import { alternate, startLineup } from './lineup.ts';

/** Few, so that bodies of 1 MiB are under way and not queues of them. */
const CONNECTIONS = 16;

/** One kind of message that is not a small GET over plain connections. */
interface Kind {
  readonly path: string;
  readonly bodyBytes?: number;
  readonly isTls?: boolean;
}

const KINDS: Readonly<Record<string, Kind>> = {
  ...Object.fromEntries(BODY_BYTES.map((bytes) => [`GET ${bytes / 1024} KiB`, { path: bodyPath(bytes) }])),
  ...Object.fromEntries(
    BODY_BYTES.map((bytes) => [`POST ${bytes / 1024} KiB`, { path: POST_PATH, bodyBytes: bytes }]),
  ),
  'GET, TLS upstream': { path: PATH, isTls: true },
};

/** CPU time of the gateway for each request, in microseconds, a figure for each round. */
export type MessageRounds = Record<string, Record<string, number[]>>;

/** What large bodies, uploads over kept connections and a TLS upstream cost: kind of message, then contestant. */
export async function measureMessages(bench: Bench): Promise<MessageRounds> {
  const results: MessageRounds = {};
  for (const isTls of [false, true]) {
    const kinds = Object.entries(KINDS).filter(([, kind]) => (kind.isTls ?? false) === isTls);
    for (const [name, rounds] of Object.entries(await measureKinds(bench, kinds, isTls)))
      results[name] = rounds;
  }
  return results;
}

async function measureKinds(
  bench: Bench,
  kinds: readonly (readonly [string, Kind])[],
  isTls: boolean,
): Promise<MessageRounds> {
  const { plan, say, upstream } = bench;
  const scene = sceneOf(bench, {
    name: isTls ? 'messages-tls' : 'messages',
    limit: FAR_ABOVE,
    accounts: ACCOUNTS,
  });
  const behind = isTls ? { upstreamPort: upstream.tlsPort, upstreamCaFile: upstream.caFile } : {};
  const chosen = CONTESTANTS.filter(
    ({ name }) => plan.includes(name) && (name === PLAIN_PROXY.name || name.startsWith('Weir')),
  );
  const lineup = await startLineup(chosen, { ...scene, ...behind }, say);
  const results: MessageRounds = {};
  try {
    for (const [name, { path, bodyBytes = 0 }] of kinds) {
      say(name);
      const send = (port: number, seconds: number) =>
        wrk({
          port,
          seconds,
          connections: CONNECTIONS,
          accounts: ACCOUNTS,
          cores: bench.cores?.load,
          path,
          bodyBytes,
        });
      await alternate(
        lineup,
        1,
        ({ port }) => send(port, plan.warmUpSeconds),
        () => undefined,
      );
      results[name] = await alternate(
        lineup,
        plan.rounds,
        async ({ port, pids }, { name: contestant }) => {
          const before = cpuUs(pids);
          const { requests, refused, failed } = await send(port, plan.seconds);
          if (refused + failed > 0)
            throw new Error(`${name}, ${contestant}: ${refused} refused, ${failed} failed`);
          return Math.round((cpuUs(pids) - before) / requests);
        },
        say,
      );
    }
    return results;
  } finally {
    await lineup.stop();
  }
}
