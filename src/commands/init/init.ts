import { randomBytes } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseIdentities } from '../../config/files/identities.ts';
import { parseLimits } from '../../config/files/limits/parse.ts';
import { FileSource } from '../../config/reader/file-source.ts';
import { parse } from '../../config/reader/parse.ts';
import { type Settings, settingsSchema } from '../../config/settings/settings.ts';
import type { ListedOperation } from '../../operations/listed-operation.ts';
import { OperationFiles } from '../../operations/operation-files.ts';
import { CommandError } from '../../process/failure.ts';
import { print, shellWord } from '../print.ts';
import { type FoundDocument, findDocument, unusable } from './document.ts';
import { type Example, exampleOf, identitiesText, limitsText, settingsText } from './texts.ts';

interface Options {
  readonly upstream: string;
  readonly force?: boolean;
}

/**
 * `weir init`: writes weir.yaml, limits.yaml and identities.yaml for an API, and prints what to run next. A document at a URL is saved
 * in this folder. Fails without writing anything if the named document is not valid, or if a file exists and `force` is not set.
 *
 * @param named a file or a URL; undefined to look for a document in this folder and at the upstream
 */
export async function init(named: string | undefined, { upstream, force = false }: Options): Promise<void> {
  const { document, operations } = await readApi(await findDocument(named, upstream), upstream);
  const file = document.kind === 'none' ? undefined : document.file;
  const weirYaml = settingsText(file, upstream);
  const settings: Settings = parse(settingsSchema, weirYaml, 'weir.yaml').value;
  const token = `weir_${randomBytes(18).toString('base64url')}`;
  const example = exampleOf(operations);
  const files = {
    'weir.yaml': weirYaml,
    'limits.yaml': limitsText(operations, example),
    'identities.yaml': identitiesText(token),
    ...(document.kind === 'download' && { [document.file]: document.text }),
  };
  parseLimits(files['limits.yaml'], 'limits.yaml');
  parseIdentities(files['identities.yaml'], 'identities.yaml');
  write(files, force);
  print(
    `Wrote ${Object.keys(files).join(', ')}. ${upstream} is the upstream.`,
    ...operationLines(document, operations),
    ...nextSteps(settings, example, token),
  );
}

interface Api {
  readonly document: FoundDocument;
  readonly operations: readonly ListedOperation[];
}

/** An unusable document is an error if the user named it, and a reason to do without if `init` found it. */
async function readApi(document: FoundDocument, upstream: string): Promise<Api> {
  if (document.kind === 'none') return { document, operations: [] };
  const { operations: settings } = parse(
    settingsSchema,
    settingsText(document.file, upstream),
    'weir.yaml',
  ).value;
  const file = resolve(document.file);
  const source = new FileSource();
  if (document.kind === 'download') source.deliver(dirname(file), new Map([[document.file, document.text]]));
  try {
    const files = new OperationFiles({ ...settings, openapi: file }, 'weir.yaml', source);
    return { document, operations: await files.load() };
  } catch (error) {
    if (document.kind === 'file' || !document.isGuess) throw error;
    return { document: { kind: 'none', reason: unusable(document.url, error) }, operations: [] };
  }
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

function operationLines(document: FoundDocument, operations: readonly ListedOperation[]): readonly string[] {
  if (document.kind === 'none') {
    return [
      document.reason,
      'Every request costs 1 point. Operations that cost more go into operations.list of weir.yaml.',
    ];
  }
  const from = document.kind === 'download' ? `, from ${document.url}` : '';
  const count = operations.length === 1 ? '1 operation' : `${operations.length} operations`;
  return [
    `${document.file} has ${count}${from}. Costs are written there: x-weir: { cost: 5 }.`,
    'Undeclared query parameters are forwarded. Delete undeclaredQuery in weir.yaml to refuse them with a 422.',
  ];
}

function nextSteps(
  { listen }: Settings,
  { method, path, requests }: Example,
  token: string,
): readonly string[] {
  const option = method === 'GET' ? '' : `-X ${shellWord(method)} `;
  const header = shellWord(`Authorization: Bearer ${token}`);
  const url = shellWord(`http://${listen.host}:${listen.port}${path}`);
  return [
    '',
    '  weir start',
    '',
    `Then, in another terminal, ${requests} requests; the last one gets a 429:`,
    '',
    `  for i in $(seq ${requests}); do curl -si ${option}-H ${header} ${url} | head -1; done`,
    '',
    'The limits are in limits.yaml, and the token is in identities.yaml.',
  ];
}
