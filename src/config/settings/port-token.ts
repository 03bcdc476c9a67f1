import { Type } from 'typebox';
import { fileError } from '../problem.ts';
import { readText } from '../reader/read-text.ts';
import { filePath } from './section.ts';

/** The form of a port's token, in the settings or in a file. */
const TOKEN_PATTERN = '^\\S{16,}$';
export const PORT_TOKEN_FORMAT = '16 characters or more, without spaces';

/** The token of a port, in the settings or in a file. */
export interface PortTokenSettings {
  readonly token?: string;
  readonly tokenFile?: string;
}

/** The settings of a port's token. */
export const portToken = (description: string) => ({
  token: Type.Optional(
    Type.String({
      description: `${description} Prefer setting it by its variable.`,
      pattern: TOKEN_PATTERN,
      secret: true,
      expects: PORT_TOKEN_FORMAT,
    }),
  ),
  tokenFile: Type.Optional(
    filePath('File with that token, of the same form. Read for each request, so that it can be replaced.'),
  ),
});

/**
 * The token in a file that a setting names.
 *
 * @param setting such as `admin.tokenFile`
 * @throws ConfigError if it cannot be read, or has another form
 */
export function readTokenFile(file: string, setting: string): string {
  const token = readText(file, `the setting ${setting} refers to it`).trim();
  if (new RegExp(TOKEN_PATTERN).test(token)) return token;
  throw fileError(file, `must contain ${PORT_TOKEN_FORMAT}`);
}
