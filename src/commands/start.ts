import { readConfiguration } from './configuration.ts';
import { openLog } from './log/log.ts';
import { logProcessOutput } from './log/process-output.ts';
import { closeOnSignal, runGateway } from './run.ts';

/** `weir start`: the gateway, until a signal ends it. Once its files are read, it writes nothing but JSON lines. */
export async function start({ config }: { config: string }): Promise<void> {
  const configuration = await readConfiguration(config, process.env);
  const output = openLog(configuration.settings.log.level);
  logProcessOutput(output.log);
  const gateway = await runGateway(configuration, output);
  closeOnSignal(gateway.close, gateway.drain);
}
