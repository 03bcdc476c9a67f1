import { furtherRows, isCharged, type LimitRow } from '../../domain/limits/rows.ts';
import { settlementJson, settlementText } from '../../domain/settlement/settlement-text.ts';
import type { ListedOperation } from '../../operations/listed-operation.ts';
import { readConfiguration } from '../../process/configuration.ts';
import { CommandError } from '../../process/failure.ts';
import { FORMATS } from '../options.ts';
import { printExactly, printJsonExactly, shownPlace } from '../print.ts';
import { tableLines } from '../terminal/line.ts';
import { type Remark, reviewCosts } from './review.ts';

const HEAD = ['METHOD', 'PATH', 'OPERATION', 'COST', 'KIND', 'CALLERS', 'VALIDATES', 'WRITTEN AT', 'REMARKS'];

/** `weir operations`: all operations with their costs, including those without a cost and those that no request can reach. */
export async function operations({ config, format }: { config: string; format: string }): Promise<void> {
  if (!FORMATS.some((one) => one === format)) {
    throw new CommandError(`--format ${format} is not one of ${FORMATS.join(', ')}.`);
  }
  const configuration = await readConfiguration(config, process.env);
  const { upstream } = configuration.settings;
  const review = reviewCosts(configuration.operations, upstream.pathProfile);
  const remarksOf = (operation: ListedOperation) => review.get(operation) ?? [];
  const { operations: listed, limits } = configuration;
  const further = furtherRows(limits.rows);
  if (format === 'json') {
    const entries = listed.map((one) => {
      return {
        ...operationJson(one),
        validation: one.validation,
        limits: namesOf(further, one),
        remarks: remarksOf(one),
      };
    });
    printJsonExactly(entries, 2);
  } else {
    const isSettled = listed.some(({ settlement }) => settlement !== undefined);
    const own = (one: ListedOperation) => [
      ...(isSettled ? [settlementText(one) ?? ''] : []),
      ...(further.length === 0 ? [] : [namesOf(further, one).join(', ')]),
    ];
    const head = [
      ...HEAD,
      ...(isSettled ? ['SETTLEMENT'] : []),
      ...(further.length === 0 ? [] : ['FURTHER LIMITS']),
    ];
    const rows = listed.map((one) => [...rowOf(one, remarksOf(one)), ...own(one)]);
    printExactly(format === 'markdown' ? markdownOf(head, rows) : tableLines([head, ...rows]));
  }
}

/** The further limits that count an operation. */
function namesOf(further: readonly LimitRow[], operation: ListedOperation): readonly string[] {
  return further.filter((row) => isCharged(row, operation)).map(({ name }) => name);
}

const CALLERS = { caller: 'any', person: 'Persons', public: 'PUBLIC' } as const;

/** The form for programs, in which no member is left out. */
export function operationJson(operation: ListedOperation) {
  const { method, path, id, cost, kind, access, writtenAt, costWrittenAt } = operation;
  return {
    method,
    path,
    id,
    cost,
    kind,
    personOnly: access === 'person',
    public: access === 'public',
    writtenAt: shownPlace(writtenAt),
    costWrittenAt: costWrittenAt === undefined ? null : shownPlace(costWrittenAt),
    ...settlementJson(operation),
  };
}

function rowOf(operation: ListedOperation, remarks: readonly Remark[]): readonly string[] {
  const { method, path, id, cost, kind, access, validation, writtenAt, costWrittenAt } = operation;
  const notes = remarks.map((remark) =>
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
    notes.join('; '),
  ];
}

function markdownOf(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  return [head, head.map(() => '---'), ...rows].map(
    (row) => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`,
  );
}
