import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigError, formatProblem } from '../../../src/config/problem.ts';
import { variableName } from '../../../src/config/reader/environment.ts';
import { maskUrl, maskUrls } from '../../../src/config/reader/mask.ts';
import { examine } from '../../../src/config/reader/parse-file.ts';
import { asNode, type SchemaNode } from '../../../src/config/reader/schema-node.ts';
import { settingsSchema } from '../../../src/config/settings/settings.ts';
import { expectLinearTime } from '../../fixtures/growth.ts';

/** Long enough not to be part of any message by chance. */
const secrets = fc
  .string({ unit: 'grapheme-ascii', minLength: 3, maxLength: 20 })
  .map((text) => `zq${text.replaceAll('@', '/')}qz`);
const schemes = fc.constantFrom('http', 'https', 'redis', 'rediss', 'ftp', 'htp', 'postgres', 'tcp');

/** Every path of the settings that takes text, with its variable. */
function textSettings(
  node: SchemaNode,
  path: readonly string[] = [],
): [readonly string[], string | undefined][] {
  const inside = Object.entries(node.properties ?? {}).flatMap(([key, one]) =>
    textSettings(one, [...path, key]),
  );
  const variants = (node.anyOf ?? []).flatMap((one) => textSettings(one, path));
  const own: [readonly string[], string | undefined][] =
    node.properties === undefined ? [[path, variableName(node, path)]] : [];
  return [...own, ...inside, ...variants];
}

function messagesOf(settings: object, env: Record<string, string> = {}): string {
  try {
    const { problems } = examine(settingsSchema, JSON.stringify(settings), 'weir.yaml', env);
    return problems.map(formatProblem).join('\n');
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
}

const nested = (path: readonly string[], value: unknown): object =>
  path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as object;

const settings = textSettings(asNode(settingsSchema));

describe('no message about a setting shows the password of a URL', () => {
  test('whichever setting it was written to, as value, list or key, or by its variable', () => {
    expect(settings.length).toBeGreaterThan(50);
    for (const [path, variable] of settings) {
      const judge = (scheme: string, secret: string) => {
        const url = `${scheme}://user:${secret}@host:1`;
        const shown = [
          messagesOf(nested(path, url)),
          messagesOf(nested(path, [url])),
          messagesOf(nested(path, { [url]: 1 })),
          messagesOf(nested(path, { kind: url })),
          variable === undefined ? '' : messagesOf({}, { [variable]: url }),
        ].join('\n');
        expect(shown).not.toContain(secret);
        expect(shown).not.toContain(JSON.stringify(secret).slice(1, -1));
      };
      fc.assert(fc.property(schemes, secrets, judge), { numRuns: 1 });
    }
  });

  test.each([
    '*zqsecret',
    '!zqsecret',
    '&zqsecret',
    '!<zqsecret>',
    '!z!zqsecret',
    '%zqsecret',
    '@zqsecret',
    '`zqsecret',
  ])('a password that YAML reads as syntax: %s', (password) => {
    const text = `store:\n  kind: redis\n  password: ${password}\n  url: ${password}\n`;
    let shown = '';
    try {
      const { problems } = examine(settingsSchema, text, 'weir.yaml');
      shown = problems.map(formatProblem).join('\n');
    } catch (error) {
      shown = String(error);
    }
    expect(shown).not.toBe('');
    expect(shown).not.toContain('zqsecret');
  });
});

describe('a text', () => {
  test('keeps all but the credentials', () => {
    expect(maskUrls('connect redis://u:p@h:1/0 failed, then https://t@h; ask a@b.example')).toBe(
      'connect redis://***@h:1/0 failed, then https://***@h; ask a@b.example',
    );
    expect(maskUrls('{"url":"http://h:1","by":"a@b.example"}')).toBe(
      '{"url":"http://h:1","by":"a@b.example"}',
    );
  });

  test('shows no password without spaces and quotes, wherever the URL is', () => {
    const password = secrets.map((secret) => secret.replaceAll(/[\s"'<>]/g, '/'));
    fc.assert(
      fc.property(schemes, password, fc.string(), (scheme, secret, around) => {
        const shown = maskUrls(`${around} ${scheme}://user:${secret}@host ${around}`);
        expect(shown.replaceAll(around, '')).not.toContain(secret);
      }),
    );
  });

  test('takes time linear in its length', () => {
    const masking = (length: number) => {
      const text = `@ ${'a:/'.repeat(length)}`;
      return () => maskUrls(text);
    };
    expectLinearTime(masking, 10_000);
  });
});

test.each([
  ['http://h/path', 'http://h/path'],
  ['u:p w@h', '***@h'],
  ['https://token@h', 'https://token@h'.replace('token', '***')],
  ['/tmp/x/ftp:/u:p@h/openapi.yaml', '/tmp/x/ftp:/***@h/openapi.yaml'],
  ['/home/a@b/weir.yaml', '/home/a@b/weir.yaml'],
])('%s is shown as %s', (value, shown) => {
  expect(maskUrl(value)).toBe(shown);
});
