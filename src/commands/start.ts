import { readConfiguration } from './configuration.ts';
import { closeOnSignal, runGateway } from './run.ts';

/** `weir start`: the gateway, until a signal ends it. */
export async function start({ config }: { config: string }): Promise<void> {
  const gateway = await runGateway(await readConfiguration(config, process.env));
  closeOnSignal(gateway.close, gateway.drain);
}
