import { mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Settings } from '../../config/settings/settings.ts';
import { type Log, openLog, openOutput } from '../../observe/log/log.ts';
import { CommandError } from '../../process/failure.ts';
import { openTerminalLog } from './terminal-log.ts';
import { TRAFFIC_REQUEST_ID } from './traffic.ts';

export interface DemoLog extends Log {
  /** Undefined if the log goes to standard output. */
  readonly file: string | undefined;
  /** Where the platform writes what it has to say. */
  readonly descriptor: number | 'inherit';
}

const FOLDER = '.weir';

/**
 * The log of the demo: a new file in the working folder, so that the instructions stay on the screen, or standard output. The file has no
 * lines of the demo's own traffic, so that it grows only with the user's requests.
 *
 * @throws CommandError if the file cannot be written
 */
export async function openDemoLog({ log, listen }: Settings, isShown: boolean): Promise<DemoLog> {
  if (isShown) {
    const forTerminal = process.stdout.isTTY ? await openTerminalLog(log.level) : undefined;
    return { ...(forTerminal ?? openLog(log.level)), file: undefined, descriptor: 'inherit' };
  }
  const file = join(FOLDER, `demo-${listen.port}.log`);
  const descriptor = openFile(file);
  const output = openOutput(descriptor);
  const lines = {
    write: (line: string) => {
      if (!line.includes(`"${TRAFFIC_REQUEST_ID}`)) output.write(line);
    },
    flushSync: () => output.flushSync(),
  };
  return { ...openLog(log.level, lines), file, descriptor };
}

/** Both processes append, so neither overwrites the lines of the other. */
function openFile(file: string): number {
  try {
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(file, '');
    return openSync(file, 'a');
  } catch (error) {
    const { message } = error as Error;
    throw new CommandError(`The log cannot be written (${message}): --log writes it to the terminal.`);
  }
}
