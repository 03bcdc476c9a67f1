import { raisedLimits } from '../../admin/facts/raised-limits.ts';
import { costliestByRow, rowsInPoints } from '../../config/checks/costs.ts';
import type { Settings } from '../../config/settings/settings.ts';
import type { Changes } from '../../observe/log/noticed-changes.ts';
import type { ListedOperation } from '../../operations/listed-operation.ts';
import type { Buckets } from '../../stages/buckets/buckets.ts';
import { chargedOperations } from '../configuration.ts';

/** Live limits that are named one by one in the log after a change. */
const MOST_LOGGED = 20;

/**
 * Reports the costs of the operations in force to the buckets, at the start and after each change of limits or costs. A live limit
 * below such a cost would refuse the operation for ever, although every file is valid: the cost is in force in its place, and
 * the log has an error for it (docs/decisions/0026).
 */
export class RunningCosts {
  readonly #buckets: Buckets;
  readonly #settings: Settings;
  readonly #log: Changes;
  #operations: readonly ListedOperation[];

  constructor(
    buckets: Buckets,
    { settings, operations }: { settings: Settings; operations: readonly ListedOperation[] },
    log: Changes,
  ) {
    this.#buckets = buckets;
    this.#settings = settings;
    this.#operations = operations;
    this.#log = log;
    this.update();
  }

  replaceOperations(operations: readonly ListedOperation[]): void {
    this.#operations = operations;
    this.update();
  }

  /** Judges the live limits by the limits and costs in force. */
  update(): void {
    const charged = chargedOperations(this.#operations, this.#settings);
    const { rows } = this.#buckets.limits;
    this.#buckets.replaceCosts(costliestByRow(charged, rows), rowsInPoints(charged, rows));
    const raised = raisedLimits(this.#buckets);
    for (const one of raised.slice(0, MOST_LOGGED)) this.#log.error(one, 'live-limit.raised');
    if (raised.length > MOST_LOGGED)
      this.#log.error({ about: `${raised.length - MOST_LOGGED} further live limits` }, 'live-limit.raised');
  }
}
