import { startPlatform } from '../platform/server.ts';
import { CommandError } from './failure.ts';
import { closeOnSignal } from './run.ts';

/** `weir platform`: the service behind the gateway. */
export async function platform({ host, port }: { host: string; port: string }): Promise<void> {
  const number = Number(port);
  if (!Number.isInteger(number) || number < 0 || number > 65_535) {
    throw new CommandError(`--port ${port} is not a port: give a whole number from 0 to 65535`);
  }
  const running = await startPlatform({ host, port: number });
  process.stdout.write(`platform listening on ${running.url}\n`);
  process.send?.({ url: running.url });
  closeOnSignal(() => running.close());
}
