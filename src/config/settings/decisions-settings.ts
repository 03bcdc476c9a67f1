import { Type } from 'typebox';
import { portToken } from './port-token.ts';
import {
  address,
  addressRanges,
  choice,
  clientCa,
  closed,
  filePath,
  listenHost,
  portNumber,
  section,
  serverTls,
  whole,
} from './section.ts';

const { host } = address('127.0.0.1', 0, 'WEIR_DECISIONS');

const optionalPort = (description: string) =>
  Type.Optional(portNumber(description, { env: 'WEIR_DECISIONS_PORT' }));

/** The port of Envoy's rate limit service. */
const envoy = closed(
  {
    host: Type.Optional(listenHost('Address to listen on. Default: `decisions.host`.')),
    port: portNumber('Port to listen on. 0 selects a free port.'),
    files: Type.Array(filePath('A file, or a folder of them.'), {
      description: 'Files with the rules, one domain in each, and folders of such files.',
      minItems: 1,
      expects: 'a list of one or more files',
    }),
    headers: choice(
      'What clients see of the limits: `draft` for RateLimit-Policy and RateLimit, `legacy` for the RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset of envoyproxy/ratelimit, or `none`.',
      ['draft', 'legacy', 'none'],
    ),
  },
  { description: "Envoy's rate limit service over gRPC, with the same `tls` and `trusted`." },
);

/** The port where proxies ask for decisions. */
export const decisionsSchema = section(
  'A port where another proxy asks whether a request may pass. See docs/decisions-for-proxies.md.',
  {
    host,
    port: optionalPort('Port to listen on. 0 selects a free port. Without it, there is no such port.'),
    socketPath: Type.Optional(
      filePath(
        'Unix socket to listen on, instead of a port. Its owner and its group may ask (mode 660), whatever `trusted` has.',
        { expects: 'the path of a socket' },
      ),
    ),
    tls: serverTls(clientCa('Proxies without one are refused.')),
    listen: Type.Optional(
      closed(
        {
          host: Type.Optional(listenHost('The same as `decisions.host`.', { env: 'WEIR_DECISIONS_HOST' })),
          port: optionalPort('The same as `decisions.port`.'),
        },
        { description: 'Another place for `host` and `port`.' },
      ),
    ),
    envoy: Type.Optional(envoy),
    trusted: addressRanges('Proxies that may ask: addresses or CIDR ranges. Others get a 403.', [
      '127.0.0.0/8',
      '::1',
    ]),
    ...portToken(
      'Bearer token of programs that may ask at `/decide` from any address, and name an Account, a cost or limits.',
    ),
    deniedStatus: whole(
      'Status that reports a 429 to the proxy, for proxies that cannot pass one on. `X-Weir-Status` then has the 429.',
      429,
      [400, 499],
    ),
    extAuthzPrefix: Type.String({
      description:
        "Envoy's `path_prefix`. Empty: the path is the original one, and the port serves no other protocol.",
      default: '/ext-authz',
      pattern: '^(/[^\\s/?#%;\\\\]+)*$',
      expects: 'a path such as /ext-authz, or nothing',
    }),
  },
);
