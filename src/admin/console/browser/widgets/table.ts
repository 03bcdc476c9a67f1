import { element } from './dom.ts';

export interface Column {
  readonly title: string;
  /** A class of the style sheet: `number`, `wide` for columns that a narrow screen leaves out. */
  readonly style?: string;
}

/** The cells of one row. They are kept: an update changes their content in place. */
export interface Row<T> {
  readonly cells: readonly (Node | string)[];
  update(value: T): void;
}

/** A panel with a heading and a table whose rows are kept from one update to the next. */
export class Table<T> {
  readonly #body = element('tbody');
  readonly #empty: HTMLElement;
  readonly #columns: readonly Column[];
  readonly #rows = new Map<string, { readonly node: HTMLTableRowElement; readonly row: Row<T> }>();
  readonly #keyOf: (value: T) => string;
  readonly #rowOf: (value: T) => Row<T>;

  /** @param head what stands above the table: a heading, buttons */
  constructor(
    panel: HTMLElement,
    head: readonly Node[],
    options: {
      readonly label: string;
      readonly columns: readonly Column[];
      readonly empty: string;
      keyOf(value: T): string;
      rowOf(value: T): Row<T>;
    },
  ) {
    this.#columns = options.columns;
    this.#keyOf = options.keyOf;
    this.#rowOf = options.rowOf;
    this.#empty = element('p', { class: 'empty muted' }, options.empty);
    const titles = options.columns.map(({ title, style }) =>
      element('th', { scope: 'col', class: style }, title),
    );
    const table = element(
      'table',
      { 'aria-label': options.label },
      element('thead', {}, element('tr', {}, ...titles)),
      this.#body,
    );
    panel.replaceChildren(
      element('div', { class: 'panel-head' }, ...head),
      element('div', { class: 'table-box' }, table),
      this.#empty,
    );
  }

  /** Shows these rows in this order. */
  show(values: readonly T[]): void {
    const shown = new Set<string>();
    let before: Element | null = this.#body.firstElementChild;
    for (const value of values) {
      const key = this.#keyOf(value);
      shown.add(key);
      const node = this.#nodeOf(key, value);
      if (node === before) before = before.nextElementSibling;
      else this.#body.insertBefore(node, before);
    }
    for (const [key, { node }] of this.#rows) {
      if (shown.has(key)) continue;
      node.remove();
      this.#rows.delete(key);
    }
    this.#empty.hidden = values.length > 0;
  }

  #nodeOf(key: string, value: T): HTMLTableRowElement {
    const known = this.#rows.get(key);
    if (known !== undefined) {
      known.row.update(value);
      return known.node;
    }
    const row = this.#rowOf(value);
    const cells = row.cells.map((cell, index) => element('td', { class: this.#columns[index]?.style }, cell));
    const node = element('tr', {}, ...cells);
    this.#rows.set(key, { node, row });
    row.update(value);
    return node;
  }
}
