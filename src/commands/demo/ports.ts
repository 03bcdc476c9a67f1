import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Settings } from '../../config/settings/settings.ts';
import { CommandError } from '../../process/failure.ts';
import { shellWord } from '../print.ts';

/** How far above a taken port a free one is looked for. */
const NEIGHBOURS = 50;

/** @throws CommandError that names each port that is taken, and a command with free ones */
export async function checkPorts({ listen, admin, upstream }: Settings): Promise<void> {
  const platform = new URL(upstream.url);
  /** Each port of the demo, and the option that chooses another. */
  const ports = [
    {
      use: 'the gateway',
      host: listen.host,
      port: Number(listen.port),
      option: (port: number) => `--port ${port}`,
    },
    {
      use: 'the admin port',
      host: admin.host,
      port: admin.port,
      option: (port: number) => `--admin-port ${port}`,
    },
    {
      use: 'the platform',
      host: platform.hostname,
      port: Number(platform.port || 80),
      option: (port: number) => `--upstream ${shellWord(`http://${platform.hostname}:${port}`)}`,
    },
  ];
  const isTaken = await Promise.all(ports.map(({ host, port }) => isPortTaken(host, port)));
  const taken = ports.filter((_port, index) => isTaken[index]);
  if (taken.length === 0) return;
  const used = new Set(ports.map(({ port }) => port));
  const lines = [];
  const options = [];
  for (const { use, host, port, option } of taken) {
    const other = await freePortAbove(host, port, used);
    used.add(other);
    options.push(option(other));
    lines.push(`Port ${port} on ${host}, for ${use}, is in use: choose another, such as ${option(other)}`);
  }
  throw new CommandError(...lines, `With free ports: ${demoCommand()} ${options.join(' ')}`);
}

/** As it was typed: `npm start` runs only in the repository. */
function demoCommand(): string {
  return process.env.npm_lifecycle_event === 'start'
    ? 'npm start --'
    : `node ${shellWord(process.argv[1] ?? '')} demo`;
}

async function freePortAbove(host: string, taken: number, used: ReadonlySet<number>): Promise<number> {
  for (let port = taken + 1; port < Math.min(taken + NEIGHBOURS, 65_536); port += 1) {
    if (!used.has(port) && !(await isPortTaken(host, port))) return port;
  }
  return 0;
}

/** Other reasons why a port cannot be opened are reported when it is. */
async function isPortTaken(host: string, port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen({ host, port });
    await once(server, 'listening');
    server.close();
    await once(server, 'close');
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
  }
}
