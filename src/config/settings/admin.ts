import { Type } from 'typebox';
import { filePath, host, port, section, serverTls } from './section.ts';

/** The port for operators, and the token that protects it. */
export const adminSchema = section('The port that serves metrics, health and usage.', {
  host: host('Address to listen on.', '127.0.0.1', 'WEIR_ADMIN_HOST'),
  port: port('Port to listen on. 0 selects a free port.', 9090, 'WEIR_ADMIN_PORT'),
  tls: Type.Optional(
    Type.Object(serverTls, {
      description: 'Serve HTTPS. The files are followed while Weir runs.',
      additionalProperties: false,
    }),
  ),
  token: Type.Optional(
    Type.String({
      description:
        'Bearer token for everything except metrics and health. Prefer setting it by its variable.',
      pattern: '^\\S{16,}$',
      secret: true,
      expects: '16 characters or more, without spaces',
    }),
  ),
  tokenFile: Type.Optional(
    filePath('File with that token. Read for each request, so that it can be replaced.'),
  ),
});
