import { type TProperties, Type } from 'typebox';

/**
 * The schema of one section of weir.yaml. To add a section, give every setting a default and a description, and run
 * `npm run docs`. The environment variables are derived from the path (`WEIR_<SECTION>_<SETTING>`). Set `env` only if
 * a different name is clearer.
 */
export function section<T extends TProperties>(description: string, properties: T) {
  return Type.Object(properties, { description, default: {}, additionalProperties: false });
}

export const host = (description: string, fallback: string, env: string) =>
  Type.String({ description, default: fallback, minLength: 1, env, expects: 'a host name or address' });

export const port = (description: string, fallback: number, env: string) =>
  Type.Integer({ description, default: fallback, minimum: 0, maximum: 65535, env });

export const addressRanges = (description: string, fallback: readonly string[]) =>
  Type.Array(
    Type.String({ pattern: '^[0-9A-Fa-f:.]+(/\\d{1,3})?$', expects: 'an address or a CIDR range' }),
    { description, default: [...fallback] },
  );

export const httpUrl = (description: string, fallback?: string) =>
  Type.String({
    description,
    ...(fallback === undefined ? {} : { default: fallback }),
    pattern: '^https?://[^\\s/?#@]+(/[^\\s?#]*)?$',
    expects: 'an http:// or https:// URL without a query',
    url: true,
  });

/** One day: longer than any sensible timeout. */
const MAX_MS = 86_400_000;

export const milliseconds = (description: string, fallback: number, minimum = 1) =>
  Type.Integer({ description, default: fallback, minimum, maximum: MAX_MS });

export const count = (description: string, fallback: number) =>
  Type.Integer({ description, default: fallback, minimum: 1 });

/** A file; a relative path is resolved from the folder of the settings file. */
export const filePath = (description: string, fallback?: string) =>
  Type.String({
    description,
    ...(fallback === undefined ? {} : { default: fallback }),
    minLength: 1,
    file: true,
    expects: 'the path of a file',
  });

/** The certificate of a port. */
export const serverTls = {
  certFile: filePath('Certificate in PEM, followed by its intermediate certificates.'),
  keyFile: filePath('Private key of the certificate, in PEM.'),
};

/** The settings that `tlsOptions` (src/domain/tls-files.ts) reads. */
export const tlsFiles = {
  caFile: Type.Optional(filePath('Certificate authority to trust instead of those of the system.')),
  certFile: Type.Optional(filePath('Client certificate.')),
  keyFile: Type.Optional(filePath('Private key of the client certificate.')),
  serverName: Type.Optional(
    Type.String({ description: 'Expected name in the server certificate.', minLength: 1 }),
  ),
};
