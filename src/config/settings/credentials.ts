import { Type } from 'typebox';
import type { Finding } from '../reader/schema-check.ts';
import { identitySchema } from './identity-settings.ts';
import { flag, list, variant } from './section.ts';
import type { Settings } from './settings.ts';

const forwarded = {
  forward: flag('Whether the upstream receives it.', true),
  identity: Type.Optional(
    Type.Union(identitySchema.anyOf, {
      description: 'What verifies it, with the settings of `identity`. Default: what verifies bearer tokens.',
    }),
  ),
};

const inHeader = variant('header', 'The value of a header field is an API key.', {
  name: Type.String({
    description: 'Name of the field.',
    pattern: '^[A-Za-z][A-Za-z0-9-]*$',
    maxLength: 64,
    expects: 'the name of a header field, such as X-API-Key',
  }),
  ...forwarded,
});

const inBasic = variant(
  'basic',
  'The user name of `Authorization: Basic` is an API key. The password is ignored.',
  forwarded,
);

/** Credentials that are accepted besides bearer tokens. */
export const credentialsSchema = list(
  'Credentials that are accepted besides `Authorization: Bearer`. See docs/identity.md.',
  Type.Union([inHeader, inBasic]),
);

/** The settings of everything that verifies credentials, bearer tokens first. */
export function identitySections({
  identity,
  credentials,
}: Pick<Settings, 'identity' | 'credentials'>): readonly Settings['identity'][] {
  return [identity, ...credentials.flatMap((one) => one.identity ?? [])];
}

/** Fields with a meaning of their own, also in requests to the upstream: a client could send what only the gateway writes there. */
const RESERVED =
  /^(accept.*|authorization|connection|content-.*|cookie|date|expect|forwarded|host|idempotency-key|if-.*|keep-alive|origin|proxy.*|range|ratelimit.*|referer|service-ratelimit-mode|te|trace(parent|state)|trailer|transfer-encoding|upgrade|user-agent|via|x-client-certificate-subject|x-(account|organization|principal)-.*|x-forwarded-.*|x-http-.*|x-real-ip|x-request-id|x-service-account)$/;

/** Conflicts between credentials that are valid individually. */
export function credentialFindings(credentials: Settings['credentials']): readonly Finding[] {
  const seen = new Set<string>();
  return credentials.flatMap((credential, index) => {
    const path = ['credentials', `${index}`];
    const name = credential.kind === 'header' ? credential.name.toLowerCase() : 'Basic';
    if (RESERVED.test(name)) return [{ path: [...path, 'name'], message: `${name} has another meaning` }];
    const isTwice = seen.has(name);
    seen.add(name);
    return isTwice ? [{ path, message: `${name} is listed twice` }] : [];
  });
}
