import { Type } from 'typebox';
import { addressRanges, host, section } from './section.ts';

/** The port where proxies ask for decisions. */
export const decisionsSchema = section(
  'A port where another proxy asks whether a request may pass. See docs/decisions-for-proxies.md.',
  {
    listen: section('The port for those proxies.', {
      host: host('Address to listen on.', '127.0.0.1', 'WEIR_DECISIONS_HOST'),
      port: Type.Optional(
        Type.Integer({
          description: 'Port to listen on. 0 selects a free port. Without it, there is no such port.',
          minimum: 0,
          maximum: 65535,
          env: 'WEIR_DECISIONS_PORT',
        }),
      ),
    }),
    trusted: addressRanges('Proxies that may ask: addresses or CIDR ranges. Others get a 403.', [
      '127.0.0.0/8',
      '::1',
    ]),
    extAuthzPrefix: Type.String({
      description:
        "Envoy's `path_prefix`. Empty: the path is the original one, and the port serves no other protocol.",
      default: '/ext-authz',
      pattern: '^(/[^\\s/?#%;\\\\]+)*$',
      expects: 'a path such as /ext-authz, or nothing',
    }),
  },
);
