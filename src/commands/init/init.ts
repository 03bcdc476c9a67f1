import { randomBytes } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseIdentities } from '../../config/files/identities/parse-identities.ts';
import { parseLimits } from '../../config/files/limits/parse-limits.ts';
import { ConfigError } from '../../config/problem.ts';
import { FileSource } from '../../config/reader/file-source.ts';
import { parse } from '../../config/reader/parse-file.ts';
import { type Settings, settingsSchema } from '../../config/settings/settings.ts';
import { errorText } from '../../domain/shown.ts';
import type { ListedOperation } from '../../operations/listed-operation.ts';
import { OperationFiles } from '../../operations/operation-files.ts';
import { CommandError } from '../../process/failure.ts';
import { print, shellWord } from '../print.ts';
import { type FoundDocument, findDocument, problemsOfDownload, unusable } from './document.ts';
import { type Example, exampleOf, identitiesText, limitsText, settingsText } from './texts.ts';
import { findPath, type Trial, tryPaths } from './trial.ts';

/**
 * `weir init`: writes weir.yaml, limits.yaml and identities.yaml for an API, and prints what to run next. A document at a URL is saved
 * in this folder. Fails without writing anything if the named document is not valid, or if a file exists and `force` is not set.
 *
 * @param named a file or a URL; undefined to look for a document in this folder and at the upstream
 */
export async function init(
  named: string | undefined,
  { upstream, force = false }: { readonly upstream: string; readonly force?: boolean },
): Promise<void> {
  const { document, operations, trial } = await readApi(await findDocument(named, upstream), upstream);
  const file = document.kind === 'none' ? undefined : document.file;
  const weirYaml = settingsText(file, upstream, trial.basePath);
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
  const guess = document.kind === 'none' ? await findPath(upstream) : undefined;
  print(
    `Wrote ${Object.keys(files).join(', ')}. ${upstream} is the upstream.`,
    ...operationLines(document, operations),
    ...(guess ?? trial).lines,
    ...nextSteps(settings, example, token, guess?.path ?? (guess && ANY_PATH)),
  );
}

const UNTRIED: Trial = { basePath: undefined, lines: [] };

/** Where no path is known that the API serves. The shell then refuses the loop until a person has written one. */
const ANY_PATH = '';

/** An unusable document is an error if the user named it, and a reason to do without if `init` found it. */
async function readApi(document: FoundDocument, upstream: string) {
  if (document.kind === 'none') return { document, operations: [], trial: UNTRIED };
  const { operations: settings } = parse(
    settingsSchema,
    settingsText(document.file, upstream),
    'weir.yaml',
  ).value;
  const file = resolve(document.file);
  const source = new FileSource();
  if (document.kind === 'download') source.deliver(dirname(file), new Map([[document.file, document.text]]));
  try {
    const load = (basePath?: string) =>
      new OperationFiles(
        { ...settings, openapi: file, ...(basePath !== undefined && { basePath }) },
        'weir.yaml',
        source,
      ).load();
    const [operations, bare] = [await load(), await load('')];
    const trial = await tryPaths(upstream, operations, bare);
    return { document, operations: trial.basePath === undefined ? operations : bare, trial };
  } catch (error) {
    if (document.kind === 'file') throw error;
    const problems = problemsOfDownload(error, file, document.url);
    if (!document.isGuess) throw new ConfigError(problems);
    return {
      document: { kind: 'none', reason: unusable(problems, document.url) } as const,
      operations: [],
      trial: UNTRIED,
    };
  }
}

function write(files: Readonly<Record<string, string>>, force: boolean): void {
  const existing = Object.keys(files).filter((name) => existsSync(name));
  if (existing.length > 0 && !force) {
    throw new CommandError(
      `Nothing was written, because this folder has ${existing.join(' and ')}: --force overwrites.`,
    );
  }
  const written: string[] = [];
  for (const [name, text] of Object.entries(files)) {
    try {
      writeFileSync(name, text, { flag: force ? 'w' : 'wx' });
    } catch (error) {
      const done = written.length === 0 ? 'Nothing' : `Only ${written.join(' and ')}`;
      throw new CommandError(`${done} was written, because ${name} cannot be: ${errorText(error)}.`);
    }
    written.push(name);
  }
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

/** @param guess instead of the example's path, a path that a person is to replace; empty if there is not even a guess */
function nextSteps(
  { listen }: Settings,
  { method, path, requests }: Example,
  token: string,
  guess: string | undefined,
): readonly string[] {
  const option = method === 'GET' ? '' : `-X ${shellWord(method)} `;
  const header = shellWord(`Authorization: Bearer ${token}`);
  const origin = `http://${listen.host}:${listen.port}`;
  const url = guess === undefined ? shellWord(origin + path) : `"${origin}$target"`;
  const assignment = guess === undefined ? [] : [`  target=${guess}   # put a path of yours here`];
  const check =
    guess === ANY_PATH ? `: "\${target:?put a path of yours there, such as target=/items}"; ` : '';
  return [
    '',
    '  weir start',
    '',
    `Then, in another terminal, ${requests} requests; the last one gets a 429:`,
    '',
    ...assignment,
    `  ${check}for i in $(seq ${requests}); do curl -si ${option}-H ${header} ${url} | head -1; done`,
    '',
    'The limits are in limits.yaml, and the token is in identities.yaml.',
  ];
}
