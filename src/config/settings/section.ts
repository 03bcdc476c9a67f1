/** The words that schemas of settings are written in. */
import { type TProperties, type TSchema, type TSchemaOptions, Type } from 'typebox';

/** A mapping that has no other keys. */
export function closed<T extends TProperties>(properties: T, options: TSchemaOptions = {}) {
  return Type.Object(properties, { ...options, additionalProperties: false });
}

/**
 * The schema of one section of weir.yaml. To add a section, give every setting a default and a description, and run
 * `npm run docs`. The environment variables are derived from the path (`WEIR_<SECTION>_<SETTING>`). Set `env` only if
 * a different name is clearer.
 */
export function section<T extends TProperties>(
  description: string,
  properties: T,
  options: TSchemaOptions = {},
) {
  return closed(properties, { description, default: {}, ...options });
}

/** A variant of a union that is selected by its `kind`. */
export function variant<K extends string, T extends TProperties>(
  kind: K,
  description: string,
  properties: T,
) {
  return closed({ kind: Type.Literal(kind, { description }), ...properties });
}

/** One of these words; the first is the default. */
export function choice<Word extends string>(description: string, words: readonly [Word, ...Word[]]) {
  return literals(words, { description, default: words[0] });
}

/** One of these words. The compiler cannot know it of a union that is made of a list, and would take its type as `never`. */
export function literals<Word extends string>(words: readonly Word[], options: TSchemaOptions = {}) {
  return Type.Unsafe<Word>(
    Type.Union(
      words.map((word) => Type.Literal(word)),
      options,
    ),
  );
}

export const text = (description: string, options: TSchemaOptions = {}) =>
  Type.String({ description, minLength: 1, ...options });

/** Text that is not shown in messages. */
export const secret = (description: string) =>
  text(`${description} Prefer setting it by its variable.`, { secret: true });

export const list = <T extends TSchema>(description: string, item: T, options: TSchemaOptions = {}) =>
  Type.Array(item, { description, default: [], ...options });

export const flag = (description: string, fallback: boolean) =>
  Type.Boolean({ description, default: fallback });

/** A whole number with a default. */
export const whole = (
  description: string,
  fallback: number,
  [minimum, maximum]: readonly [minimum: number, maximum: number],
  options: TSchemaOptions = {},
) => Type.Integer({ description, default: fallback, minimum, maximum, ...options });

export const percent = (description: string, fallback: number) => whole(description, fallback, [1, 100]);

/** One day: longer than any sensible timeout. */
const MAX_SECONDS = 86_400;

export const milliseconds = (description: string, fallback: number, minimum = 1) =>
  whole(description, fallback, [minimum, MAX_SECONDS * 1_000]);

/** Up to a minute: of a request that another request waits for. */
export const timeout = (description: string, fallback: number) => whole(description, fallback, [1, 60_000]);

export const seconds = (description: string, fallback: number, options: TSchemaOptions = {}) =>
  whole(description, fallback, [0, MAX_SECONDS], options);

/** More than any machine has of what is counted. Node accepts no larger sizes of headers either. */
const MAX_COUNT = 1_000_000_000;

export const count = (description: string, fallback: number, minimum = 1) =>
  whole(description, fallback, [minimum, MAX_COUNT]);

const HOST = 'Address to listen on.';
const PORT = 'Port to listen on. 0 selects a free port.';

/** A port to listen on, without a default. */
export const portNumber = (description: string, options: TSchemaOptions = {}) =>
  Type.Integer({ description, minimum: 0, maximum: 65_535, ...options });

/** The settings of TLS that ask clients for a certificate. */
export const clientCa = (description: string) => ({
  clientCaFile: Type.Optional(filePath(`Authorities of client certificates. ${description}`)),
});

/** A name, or an IPv6 address: neither a URL nor an address with a port. */
const HOST_FORM = '^([^\\s:/@*\\[\\]]+|[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(%[^\\s:/]+)?)$';

/** An address to listen on. */
export const listenHost = (description: string, options: TSchemaOptions = {}) =>
  text(description, { pattern: HOST_FORM, expects: 'a host name or address', ...options });

/** @param env the variables are `<env>_HOST` and `<env>_PORT` */
export const address = (host: string, port: number, env: string) => ({
  host: listenHost(HOST, { default: host, env: `${env}_HOST` }),
  port: whole(PORT, port, [0, 65_535], { env: `${env}_PORT` }),
});

/** The form of an address or a range, which may still be none: 10.0.0.0/33. */
export const RANGE_FORM = '^[0-9A-Fa-f:.]+(/\\d{1,3})?$';

export const addressRanges = (description: string, fallback: readonly string[]) =>
  list(description, Type.String({ pattern: RANGE_FORM, expects: 'an address or a CIDR range' }), {
    default: [...fallback],
  });

export const httpUrl = (description: string, options: TSchemaOptions = {}) =>
  Type.String({
    description,
    pattern: '^https?://[^\\s/?#@]+(/[^\\s?#]*)?$',
    expects: 'an http:// or https:// URL without a query',
    url: true,
    ...options,
  });

/** A file; a relative path is resolved from the folder of the settings file. */
export const filePath = (description: string, options: TSchemaOptions = {}) =>
  text(description, { file: true, expects: 'the path of a file', ...options });

/** HTTPS at one port. */
export const serverTls = <T extends TProperties>(others: T) =>
  Type.Optional(
    closed(
      {
        certFile: filePath('Certificate in PEM, followed by its intermediate certificates.'),
        keyFile: filePath('Private key of the certificate, in PEM.'),
        ...others,
      },
      { description: 'Serve HTTPS. The files are followed while Weir runs.' },
    ),
  );

/** The settings that `tlsOptions` (src/domain/connections/tls-files.ts) reads. */
export const tlsFiles = {
  caFile: Type.Optional(filePath('Certificate authority to trust instead of the authorities of the system.')),
  certFile: Type.Optional(filePath('Client certificate.')),
  keyFile: Type.Optional(filePath('Private key of the client certificate.')),
  serverName: Type.Optional(text('Expected name in the server certificate.')),
};

const LOOPBACK_ADDRESS = /^(localhost|127(\.\d{1,3}){3}|::1)$/i;

/** Whether only this machine reaches a port on this host. */
export function isLoopback(host: string): boolean {
  return LOOPBACK_ADDRESS.test(host);
}
