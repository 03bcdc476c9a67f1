import { shortened } from '../../format.ts';

const SVG = 'http://www.w3.org/2000/svg';

type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** A space between a figure and its unit, where a line must not break. */
const BEFORE_UNIT = /(?<=[\d?–]) (?=(?:ms|s|min|h|days?|[KMG]iB|%)(?![A-Za-z]))/g;

/** The text with figures and units that stay together: `try again in 1 s`. */
export function unbroken(text: string): string {
  return text.replace(BEFORE_UNIT, '\u00a0');
}

/** A new HTML element. Children that are text stay text: nothing is ever parsed as HTML. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const created = document.createElement(name);
  assign(created, attributes);
  created.append(...children.map((child) => (typeof child === 'string' ? unbroken(child) : child)));
  return created;
}

export function svgElement<K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: readonly (Node | string)[]
): SVGElementTagNameMap[K] {
  const created = document.createElementNS(SVG, name);
  assign(created, attributes);
  created.append(...children);
  return created;
}

function assign(target: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    target.setAttribute(name, value === true ? '' : String(value));
  }
}

export function quietButton(text: string, act: () => void): HTMLElement {
  const button = element('button', { type: 'button', class: 'quiet' }, text);
  button.addEventListener('click', act);
  return button;
}

/** A remark beside something else. */
export function remark(text: string): HTMLElement {
  return element('small', { class: 'muted' }, text);
}

/** Where a long name may break: before a capital letter, and after what separates words. */
const WORD_ENDS = /(?<=[a-z0-9])(?=[A-Z])|(?<=[/_.:}])/;

/** A whole name or path in a table, which breaks between its words. */
export function breakable(tag: 'span' | 'code', text: string): HTMLElement {
  const parts = text.split(WORD_ENDS).flatMap((part) => [element('wbr'), part]);
  return element(tag, { class: 'id whole' }, ...parts.slice(1));
}

/** Characters of an id in a table. */
const SHOWN_CHARACTERS = 22;

/** An id in a table: shortened in the middle, and whole on hover. */
export function shortId(id: string): HTMLElement {
  return element('span', { class: 'id', title: id }, shortened(id, SHOWN_CHARACTERS));
}

/** A link to the page of an Account, Organization, Person or address. Its id is shortened in the same way. */
export function ownerLink(scope: string, id: string): HTMLElement {
  const href = `#/${scope}/${encodeURIComponent(id)}`;
  return element('a', { class: 'id', href, title: id }, shortened(id, SHOWN_CHARACTERS));
}

/** The element with this id, which the page has. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new TypeError(`the page has no #${id}`);
  return found;
}

/** Changes the text only if it differs, so that a selection survives and nothing is announced twice. */
export function setText(target: Element, text: string): void {
  const shown = unbroken(text);
  if (target.textContent !== shown) target.textContent = shown;
}

/** Switches the page between light and dark. Returns which it is now. */
export function switchTheme(): string {
  const { dataset } = document.documentElement;
  const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  dataset.theme = (dataset.theme ?? system) === 'dark' ? 'light' : 'dark';
  return dataset.theme;
}

/** An icon of the page's own, drawn so that it differs by shape and not only by colour. */
export function icon(kind: 'good' | 'warning' | 'bad'): SVGSVGElement {
  const shape = {
    good: svgElement('circle', { cx: 8, cy: 8, r: 7 }),
    warning: svgElement('path', { d: 'M8 1 15.500 14.500H.500Z' }),
    bad: svgElement('path', { d: 'M5 1h6l4 4v6l-4 4H5l-4-4V5Z' }),
  }[kind];
  const mark = {
    good: 'M4.600 8.200 7 10.600l4.400-5',
    warning: 'M8 6v4M8 12v.6',
    bad: 'M5.500 5.500l5 5M10.500 5.500l-5 5',
  }[kind];
  return svgElement(
    'svg',
    { viewBox: '0 0 16 16', class: `icon ${kind}`, 'aria-hidden': 'true' },
    shape,
    svgElement('path', { d: mark, class: 'mark' }),
  );
}
