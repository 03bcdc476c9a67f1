import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { EncodedCommand } from './connection/ioredis-internals.ts';

/** A script of `lua/`, and the connections that have loaded it. */
export class Script {
  readonly text: string;
  readonly digest: string;
  readonly knownBy = new WeakSet<object>();

  constructor(name: string) {
    this.text = readFileSync(new URL(`../../../lua/${name}.lua`, import.meta.url), 'utf8');
    this.digest = createHash('sha1').update(this.text).digest('hex');
  }
}

/** Called once: with the reply, or with the error of Redis or of its connection. */
export type Answered = (error: Error | undefined, reply: Buffer) => void;

/**
 * One call of a script, to be sent with `client.sendCommand`. The first call on a connection sends the script's text (EVAL), later
 * ones its digest (EVALSHA).
 *
 * Equivalent to a command of `defineCommand` at half the cost: the arguments are encoded once, and the reply goes to a callback.
 */
export class ScriptCall extends EncodedCommand {
  readonly #script: Script;
  readonly #argumentCount: number;
  #body: string;
  #answered: Answered | undefined;
  #socket: object | undefined;

  /** `body` is what follows the script in RESP: `argumentCount` bulk strings, the number of keys first. */
  constructor(script: Script, slot: number, argumentCount: number, body: string, answered: Answered) {
    super('evalsha', slot);
    this.#script = script;
    this.#body = body;
    this.#argumentCount = argumentCount;
    this.#answered = answered;
  }

  /**
   * Lets go of everything. V8 allocates a function literal that is assigned to a property in the old generation, and ioredis gives each
   * command one: what it reaches would stay in memory until the next full collection.
   */
  protected override answered(error: Error | undefined, reply: Buffer): void {
    if (error !== undefined && this.#socket !== undefined && isUnknown(error)) {
      this.#script.knownBy.delete(this.#socket);
    }
    const answered = this.#answered;
    this.#answered = undefined;
    this.#body = '';
    answered?.(error, reply);
  }

  protected override encode(socket: object): string {
    const { knownBy, digest, text } = this.#script;
    this.#socket = socket;
    const head = `*${this.#argumentCount + 2}\r\n`;
    if (knownBy.has(socket)) return `${head}$7\r\nEVALSHA\r\n$40\r\n${digest}\r\n${this.#body}`;
    knownBy.add(socket);
    return `${head}$4\r\nEVAL\r\n${bulkString(text)}${this.#body}`;
  }
}

/** Whether Redis did not run the call because it does not have the script, for example after a restart. */
export function isUnknown(error: Error): boolean {
  return error.message.startsWith('NOSCRIPT');
}

/** A RESP bulk string. */
export function bulkString(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}

/** A number as a RESP bulk string. Most are small. */
export function bulkNumber(value: number): string {
  return (value >= 0 && value < SMALL.length ? SMALL[value] : undefined) ?? bulkString(`${value}`);
}

const SMALL = Array.from({ length: 64 }, (_, value) => bulkString(`${value}`));
