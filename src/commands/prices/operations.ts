import type { ListedOperation } from '../../openapi/listed-operation.ts';
import { FORMATS } from '../choices.ts';
import { readConfiguration } from '../configuration.ts';
import { CommandError } from '../failure.ts';
import { shownPlace } from '../print.ts';
import { coloured } from '../terminal/colour.ts';
import { type Remark, reviewPrices } from './price-review.ts';

const HEAD = ['METHOD', 'PATH', 'OPERATION', 'COST', 'KIND', 'CALLERS', 'VALIDATES', 'WRITTEN AT', 'REMARKS'];

/** `weir operations`: all operations with their costs, including those without a cost and those that no request can reach. */
export async function operations({ config, format }: { config: string; format: string }): Promise<void> {
  if (!FORMATS.some((one) => one === format)) {
    throw new CommandError(`--format ${format} is not one of ${FORMATS.join(', ')}.`);
  }
  const configuration = await readConfiguration(config, process.env);
  const { upstream } = configuration.settings;
  const review = reviewPrices(configuration.operations, upstream.pathProfile);
  const remarksOf = (operation: ListedOperation) => review.get(operation) ?? [];
  process.stdout.write(
    format === 'json'
      ? `${JSON.stringify(
          configuration.operations.map((one) => entryOf(one, remarksOf(one))),
          null,
          2,
        )}\n`
      : tableOf(
          configuration.operations.map((one) => rowOf(one, remarksOf(one))),
          format === 'markdown',
        ),
  );
}

const CALLERS = { caller: 'any', person: 'Persons', public: 'PUBLIC' } as const;

function entryOf(operation: ListedOperation, remarks: readonly Remark[]): object {
  const { method, path, id, cost, kind, access, validation, writtenAt, costWrittenAt } = operation;
  return {
    method,
    path,
    id,
    cost,
    kind,
    personOnly: access === 'person',
    public: access === 'public',
    validation,
    writtenAt: shownPlace(writtenAt),
    costWrittenAt: costWrittenAt === undefined ? null : shownPlace(costWrittenAt),
    remarks,
  };
}

function rowOf(operation: ListedOperation, remarks: readonly Remark[]): readonly string[] {
  const { method, path, id, cost, kind, access, validation, writtenAt, costWrittenAt } = operation;
  const told = remarks.map((remark) =>
    remark.kind === 'unpriced' ? 'unpriced' : `${remark.kind}: ${remark.text}`,
  );
  return [
    method,
    path,
    id,
    String(cost),
    kind,
    CALLERS[access],
    validation,
    shownPlace(costWrittenAt ?? writtenAt),
    told.join('; '),
  ];
}

function tableOf(rows: readonly (readonly string[])[], isMarkdown: boolean): string {
  const widths = HEAD.map((word, column) =>
    Math.max(...[HEAD, ...rows].map((row) => row[column]?.length ?? 0), word.length),
  );
  const padded = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0));
  const lines = isMarkdown
    ? [HEAD, HEAD.map(() => '---'), ...rows].map(
        (row) => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`,
      )
    : [HEAD, ...rows].map((row) => padded(row).join('  ').trimEnd());
  if (!isMarkdown) lines[0] = coloured(process.stdout, 'bold', lines[0] ?? '');
  return `${lines.join('\n')}\n`;
}
