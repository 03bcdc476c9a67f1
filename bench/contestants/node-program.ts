import { freePort, startProgram } from '../lab/program.ts';
import type { Running, Scene } from './contestant.ts';

/** What Weir's image sets (decision 11), and so what every gateway on Node gets here. */
const NODE_OPTIONS = ['--min-semi-space-size=16', '--no-allocation-site-pretenuring'];

/** Starts a gateway that runs on this Node. `argsOf` gives its file and arguments. */
export async function startOnNode(
  { cores }: Scene,
  argsOf: (port: number) => readonly (string | number)[],
): Promise<Running> {
  const port = await freePort();
  const program = await startProgram({
    command: process.execPath,
    args: [...NODE_OPTIONS, ...argsOf(port).map(String)],
    cores: cores?.gateway,
    port,
    env: { NODE_ENV: 'production' },
  });
  return { port, pids: [program.pid], stop: () => program.stop() };
}
