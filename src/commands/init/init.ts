import { randomBytes } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseIdentities } from '../../config/files/identities.ts';
import { parseLimits } from '../../config/files/limits/parse.ts';
import { parse } from '../../config/reader/parse.ts';
import { type Settings, settingsSchema } from '../../config/settings/settings.ts';
import type { ListedOperation } from '../../openapi/listed-operation.ts';
import { OperationFiles } from '../../openapi/operation-files.ts';
import { CommandError } from '../../process/failure.ts';
import { print, shellWord } from '../print.ts';
import { type Example, exampleOf, identitiesText, limitsText, settingsText } from './texts.ts';

interface Options {
  readonly upstream: string;
  readonly force?: boolean;
}

/**
 * `weir init`: writes weir.yaml, limits.yaml and identities.yaml for the API that an OpenAPI document describes, and prints what to
 * run next. Fails without writing anything if the document is not valid, or if a file exists and `force` is not set.
 */
export async function init(document: string, { upstream, force = false }: Options): Promise<void> {
  const weirYaml = settingsText(document, upstream);
  const settings: Settings = parse(settingsSchema, weirYaml, 'weir.yaml').value;
  const operations = await operationsOf(settings.operations, document);
  const token = `weir_${randomBytes(18).toString('base64url')}`;
  const example = exampleOf(operations);
  const files = {
    'weir.yaml': weirYaml,
    'limits.yaml': limitsText(operations, example),
    'identities.yaml': identitiesText(token),
  };
  parseLimits(files['limits.yaml'], 'limits.yaml');
  parseIdentities(files['identities.yaml'], 'identities.yaml');
  write(files, force);
  print(...nextSteps(settings, example, token, Object.keys(files)));
}

function operationsOf(
  settings: Settings['operations'],
  document: string,
): Promise<readonly ListedOperation[]> {
  return new OperationFiles({ ...settings, openapi: resolve(document) }, 'weir.yaml').load();
}

function write(files: Readonly<Record<string, string>>, force: boolean): void {
  const existing = Object.keys(files).filter((name) => existsSync(name));
  if (existing.length > 0 && !force) {
    throw new CommandError(
      `Nothing was written, because this folder has ${existing.join(' and ')}: --force overwrites.`,
    );
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(name, text, { flag: force ? 'w' : 'wx' });
}

function nextSteps(
  { listen, upstream }: Settings,
  { method, path, requests }: Example,
  token: string,
  files: readonly string[],
): readonly string[] {
  const option = method === 'GET' ? '' : `-X ${shellWord(method)} `;
  const header = shellWord(`Authorization: Bearer ${token}`);
  const url = shellWord(`http://${listen.host}:${listen.port}${path}`);
  return [
    `Wrote ${files.join(', ')}. ${upstream.url} is the upstream.`,
    '',
    '  weir start',
    '',
    `Then, in another terminal, ${requests} requests of which the last one gets a 429:`,
    '',
    `  for i in $(seq ${requests}); do curl -si ${option}-H ${header} ${url} | head -1; done`,
    '',
    'limits.yaml has the limits, identities.yaml the token. Costs are written in the OpenAPI document: x-weir: { cost: 5 }.',
  ];
}
