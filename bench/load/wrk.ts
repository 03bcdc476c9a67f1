import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('./keys.lua', import.meta.url));

/** The read that all contestants forward. */
export const PATH = '/v3/payments/payees';

export interface WrkOptions {
  readonly port: number;
  readonly seconds: number;
  readonly connections: number;
  readonly accounts: number;
  /** The requests begin with the Account after this one. Default: 0. */
  readonly before?: number;
  readonly cores: string | undefined;
  readonly path?: string;
  /** Length of the body of each request, which is a POST then; 0 sends GETs. */
  readonly bodyBytes?: number;
  /** A file with a token of each Account in its lines; by default the tokens of the identities file. */
  readonly tokensFile?: string;
  /** Further fields of each request. */
  readonly fields?: Readonly<Record<string, string>>;
  /** With a certificate that is not verified. */
  readonly isTls?: boolean;
}

export interface WrkResult {
  readonly requests: number;
  readonly us: number;
  /** Answers with a status of 400 or more. */
  readonly refused: number;
  /** Connections and reads that failed or took too long. */
  readonly failed: number;
  readonly p50Us: number;
  readonly p99Us: number;
}

/** A closed loop: each connection sends its next request when it has its answer. */
export async function wrk(options: WrkOptions): Promise<WrkResult> {
  const { port, seconds, connections, accounts, cores, path = PATH, bodyBytes = 0 } = options;
  const { tokensFile = '', fields = {}, isTls = false, before = 0 } = options;
  const url = `${isTls ? 'https' : 'http'}://127.0.0.1:${port}`;
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', SCRIPT, url];
  const command = [...(cores === undefined ? [] : ['taskset', '-c', cores]), 'wrk', ...args];
  const [program = 'wrk', ...rest] = [
    ...command,
    '--',
    `${accounts}`,
    path,
    `${bodyBytes}`,
    tokensFile,
    `${before}`,
  ];
  rest.push(...Object.entries(fields).map(([name, value]) => `${name}=${value}`));
  const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [output] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  const line = output.split('\n').find((one) => one.startsWith('{'));
  if (line === undefined) throw new Error(`wrk said nothing of its run:\n${output}`);
  return JSON.parse(line);
}
