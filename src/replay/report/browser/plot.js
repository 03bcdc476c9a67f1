import { byId, element, short, time } from './format.js';

const SVG = 'http://www.w3.org/2000/svg';
const MARGIN = { top: 14, right: 8, bottom: 22, left: 46 };

/** A limit far above everything else would press the rest flat: it is named at the top edge instead. */
const FAR_ABOVE = 4;

export function svg(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/**
 * An empty chart that fills its box, with a grid and labels on the left.
 * @returns the SVG, the box of its plot, and `y`, which places a value
 */
export function plot(box, { label, most, format = short }) {
  const { width: boxWidth, height } = box.getBoundingClientRect();
  // A page that is not laid out yet has no width; it is drawn again when it gets one.
  const width = Math.max(boxWidth, 120);
  const root = svg('svg', { role: 'img', 'aria-label': label, viewBox: `0 0 ${width} ${height}` });
  const inner = {
    left: MARGIN.left,
    right: width - MARGIN.right,
    top: MARGIN.top,
    bottom: height - MARGIN.bottom,
  };
  const ticks = niceTicks(most);
  const top = Math.max(most, ticks.at(-1) ?? 0) || 1;
  const y = (value) => inner.bottom - (Math.min(value, top) / top) * (inner.bottom - inner.top);
  for (const tick of ticks) {
    const at = Math.round(y(tick)) + 0.5;
    root.append(
      svg('line', { class: tick === 0 ? 'base' : 'grid', x1: inner.left, x2: inner.right, y1: at, y2: at }),
      svg('text', { x: inner.left - 8, y: at + 4, 'text-anchor': 'end' }, format(tick)),
    );
  }
  box.replaceChildren(root);
  return { root, inner, y };
}

/** About four round numbers from 0 to the value. */
function niceTicks(most) {
  if (most <= 0) return [0];
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= rough) ?? rough;
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, index) => index * step);
}

/** Whether a limit belongs into a chart whose other values reach `most`. */
export function isInReach(limit, most) {
  return limit !== null && limit <= most * FAR_ABOVE;
}

const STEPS_MS = [1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400, 604_800].map(
  (seconds) => seconds * 1_000,
);

/** Labels of round times along the bottom. */
export function timeAxis({ root, inner }, fromMs, toMs) {
  const most = Math.max(2, Math.floor((inner.right - inner.left) / 64));
  const span = toMs - fromMs;
  const step = STEPS_MS.find((one) => span / one <= most) ?? span / most;
  for (let at = Math.ceil(fromMs / step) * step; at <= toMs; at += step) {
    const x = inner.left + ((at - fromMs) / span) * (inner.right - inner.left);
    const anchor = x < inner.left + 20 ? 'start' : x > inner.right - 20 ? 'end' : 'middle';
    root.append(svg('text', { x, y: inner.bottom + 16, 'text-anchor': anchor }, timeLabel(at, step)));
  }
}

function timeLabel(ms, stepMs) {
  const text = time(ms);
  if (stepMs >= 86_400_000 || text.endsWith('00:00:00')) return text.slice(5, 10);
  return text.slice(11, stepMs < 60_000 ? 19 : 16);
}

/** Shows what `describe` gives for the place of the pointer: a title and lines; and a rule at its x. */
export function describeOnHover({ root, inner }, describe) {
  const tip = byId('tip');
  const rule = svg('line', { class: 'rule', y1: inner.top, y2: inner.bottom });
  const hide = () => {
    tip.hidden = true;
    rule.remove();
  };
  root.addEventListener('pointerleave', hide);
  root.addEventListener('pointermove', (event) => {
    const at = event.clientX - root.getBoundingClientRect().left;
    const found = describe((at - inner.left) / (inner.right - inner.left));
    if (found === undefined) return hide();
    const x = inner.left + found.share * (inner.right - inner.left);
    rule.setAttribute('x1', x);
    rule.setAttribute('x2', x);
    root.append(rule);
    tip.replaceChildren(
      element('b', {}, found.title),
      ...found.lines.map((line) => element('div', {}, line)),
    );
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = event.clientX + 16 + width > innerWidth ? event.clientX - width - 16 : event.clientX + 16;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, event.clientY - height - 12)}px`;
  });
}
