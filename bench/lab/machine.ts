import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { delimiter, join } from 'node:path';

export const [NODE = ''] = process.versions.node.split('.');
/** The sections without a version in their titles, and the plots, are of the image's Node. */
export const IS_IMAGE_NODE = NODE === '24';

/** Core numbers of the two sides: what is measured stands alone on its core. */
export interface Cores {
  readonly gateway: string;
  /** One for each of several gateways, the first one's included; a single one where there are too few to go round. */
  readonly gateways: readonly string[];
  readonly load: string;
}

/** As many cores for the load as four gateways have. */
const ENOUGH_FOR_FOUR = 8;

/** One core for the gateway and others for everything else; undefined where there is nothing to divide. */
export function chooseCores(): Cores | undefined {
  const count = cpus().length;
  if (count < 2 || findProgram('taskset') === undefined) return undefined;
  const gateways = count < ENOUGH_FOR_FOUR ? ['0'] : ['0', '1', '2', '3'];
  const load = count === 2 ? '1' : `${gateways.length}-${count - 1}`;
  return { gateway: '0', gateways, load };
}

/** `2 × AMD EPYC, 24 GB, linux x64`. */
export function hardware(): string {
  const memoryGb = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} × ${processorName()}, ${memoryGb} GB, ${process.platform} ${process.arch}`;
}

/** The model of the processor, without what only makes it longer: it has to fit into the plots. */
export function processorName(): string {
  const model = cpus()[0]?.model ?? 'unknown';
  return model
    .replaceAll(/\((?:R|TM)\)|\b(?:Processor|CPU)\b/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

/** When a section's figures were measured, by which command and on what. */
export function provenance(command: string): string {
  const date = new Date().toISOString().slice(0, 16).replace('T', ' ');
  return `${date} UTC, \`${command}\`, ${hardware()}, Node ${process.versions.node}`;
}

/** The program's path: from `variable` where it is set, else from PATH; undefined when there is none. */
export function findProgram(name: string, variable?: string): string | undefined {
  const given = variable === undefined ? undefined : process.env[variable];
  if (given !== undefined && given !== '') return given;
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/** The first line that the program says of its version, whichever stream it takes for that. */
export function versionOf(program: string, args: readonly string[], pattern: RegExp): string {
  try {
    const both = execFileSync('/bin/sh', ['-c', '"$0" "$@" 2>&1 || true', program, ...args], {
      encoding: 'utf8',
    });
    return pattern.exec(both)?.[1] ?? 'unknown version';
  } catch {
    return 'unknown version';
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
