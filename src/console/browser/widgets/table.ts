import { element, setText } from './dom.ts';

/** A cell whose content changes in place. */
export interface LiveCell<T> {
  readonly node: Node;
  update(value: T): void;
}

/** A column has a text for each value, or a cell that is made once for each row. */
export type Column<T> = {
  readonly title: string;
  /** A class of the style sheet: `number`, `wide` for columns that a narrow screen leaves out. */
  readonly style?: string;
} & ({ text(value: T): string } | { cell(value: T): Node | LiveCell<T> });

interface TableRow<T> {
  readonly node: HTMLTableRowElement;
  readonly cells: readonly LiveCell<T>[];
}

/** A panel with a heading and a table whose rows are kept from one update to the next. */
export class Table<T> {
  readonly #body = element('tbody');
  readonly #empty: HTMLElement;
  readonly #options;
  readonly #rows = new Map<string, TableRow<T>>();

  /** @param more stands beside the heading */
  constructor(
    panel: HTMLElement,
    title: string,
    options: {
      readonly columns: readonly Column<T>[];
      /** What is shown if the table is empty. */
      readonly empty: string;
      keyOf(value: T): string;
      /** Whether the figures of a row are too old, so that it is grey. */
      isUnknown?(value: T): boolean;
    },
    more: readonly Node[] = [],
  ) {
    this.#options = options;
    this.#empty = element('p', { class: 'empty muted' }, options.empty);
    // Until rows are shown, whether there are any is unknown.
    this.#empty.hidden = true;
    const heads = options.columns.map((column) =>
      element('th', { scope: 'col', class: column.style }, column.title),
    );
    const head = element('thead', {}, element('tr', {}, ...heads));
    panel.replaceChildren(
      element('div', { class: 'panel-head' }, element('h2', {}, title), ...more),
      element('div', { class: 'table-box' }, element('table', { 'aria-label': title }, head, this.#body)),
      this.#empty,
    );
  }

  /** Shows these rows in this order. */
  show(values: readonly T[]): void {
    const shown = new Set<string>();
    let before: Element | null = this.#body.firstElementChild;
    for (const value of values) {
      const key = this.#options.keyOf(value);
      shown.add(key);
      const row = this.#rows.get(key) ?? this.#rowOf(value);
      this.#rows.set(key, row);
      for (const cell of row.cells) cell.update(value);
      row.node.classList.toggle('unknown', this.#options.isUnknown?.(value) ?? false);
      if (row.node === before) before = before.nextElementSibling;
      else this.#body.insertBefore(row.node, before);
    }
    for (const [key, { node }] of this.#rows) {
      if (shown.has(key)) continue;
      node.remove();
      this.#rows.delete(key);
    }
    this.#empty.hidden = values.length > 0;
  }

  #rowOf(value: T): TableRow<T> {
    const cells = this.#options.columns.map((column) => cellOf(column, value));
    return { node: element('tr', {}, ...cells.map(({ node }) => node)), cells };
  }
}

function cellOf<T>(column: Column<T>, value: T): LiveCell<T> {
  const node = element('td', { class: column.style });
  if ('text' in column) return { node, update: (changed) => setText(node, column.text(changed)) };
  const content = column.cell(value);
  const isLive = 'update' in content;
  node.append(isLive ? content.node : content);
  return { node, update: (changed) => isLive && content.update(changed) };
}
