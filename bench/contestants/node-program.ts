import { fileURLToPath } from 'node:url';
import { freePort } from '../../test/fixtures/free-port.ts';
import { NODE } from '../lab/machine.ts';
import { startProgram } from '../lab/program.ts';
import { type Contestant, type Running, runningOf, type Scene } from './contestant.ts';

/** What other gateways on Node get, because Weir sets the same for itself (decision 11). */
export const LIKE_WEIR = [
  '--min-semi-space-size=16',
  '--no-allocation-site-pretenuring',
  '--heap-growing-percent=200',
  ...(Number(NODE) >= 24 ? ['--no-memory-reducer-favors-memory'] : []),
];

/**
 * Starts a gateway that runs on this Node. `argsOf` gives its file and arguments, after options of Node's own; `onOutput` takes what it
 * writes to standard output.
 */
export async function startOnNode(
  { cores, upstreamCaFile }: Scene,
  argsOf: (port: number) => readonly (string | number)[],
  onOutput?: (text: string) => void,
): Promise<Running> {
  const port = await freePort();
  const program = await startProgram({
    command: process.execPath,
    args: argsOf(port).map(String),
    cores: cores?.gateway,
    port,
    onOutput,
    env: {
      NODE_ENV: 'production',
      ...(upstreamCaFile === undefined ? {} : { NODE_EXTRA_CA_CERTS: upstreamCaFile }),
    },
  });
  return runningOf(program, port);
}

const SERVER = fileURLToPath(new URL('./bare-server.mjs', import.meta.url));

/** The floor of this stack: no framework, no limiter, no request id, hardly a header looked at. */
export const bare: Contestant = {
  name: 'bare node:http + undici',
  limiter: 'none',
  hasLimiter: false,
  find: () => ({ version: `Node ${process.version}` }),
  start: (scene) => startOnNode(scene, (port) => [...LIKE_WEIR, SERVER, port, scene.upstreamPort]),
};
