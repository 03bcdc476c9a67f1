import { findWarnings } from '../config/checks/warnings.ts';
import { formatProblem } from '../config/problem.ts';
import { openLog } from '../observe/log/log.ts';
import { logProcessOutput } from '../observe/log/process-output.ts';
import { closeOnSignal } from '../process/close-on-signal.ts';
import { chargedOperations, readConfiguration } from '../process/configuration.ts';
import { environmentWith, type SettingOverrides } from '../process/overrides.ts';
import { runGateway } from '../process/run.ts';
import { allocateYoung, growOnceSettled } from '../process/tune-memory.ts';

/** `weir start`: the gateway, until a signal ends it. Once its files are read, it writes nothing but JSON lines. */
export async function start({ config, ...overrides }: SettingOverrides & { config: string }): Promise<void> {
  const closing = closeOnSignal();
  allocateYoung();
  const configuration = await readConfiguration(config, environmentWith(overrides, process.env));
  const { operations, settings } = configuration;
  const output = openLog(settings.log.level, undefined, settings.log.fields);
  logProcessOutput(output.log);
  const charged = chargedOperations(operations, settings);
  for (const warning of findWarnings(configuration, charged, process.env, Date.now())) {
    output.log.warn(formatProblem(warning));
  }
  await closing(runGateway(configuration, output));
  growOnceSettled();
}
