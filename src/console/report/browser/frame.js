import { shownCount, shownTime } from '../../../replay/shown.ts';
import { byId, element, svgElement } from '../../browser/widgets/dom.ts';
import { Plot } from '../../browser/widgets/plot.ts';

const MARGIN = { top: 14, right: 8, bottom: 22, left: 46 };

/** A limit far above everything else would press the rest flat: it is named at the top edge instead. */
const FAR_ABOVE = 4;

const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

export function short(value) {
  return value !== 0 && Math.abs(value) < 10 ? String(Math.round(value * 100) / 100) : SHORT.format(value);
}

export function time(ms) {
  return shownTime(new Date(ms).toISOString());
}

/**
 * An empty chart that fills its box, with a grid and labels on the left.
 * @returns the SVG and the plot within it
 */
export function frame(box, { label, most, format = short }) {
  const { width: boxWidth, height } = box.getBoundingClientRect();
  // A page that is not laid out yet has no width; it is drawn again when it gets one.
  const width = Math.max(boxWidth, 120);
  const { left, top } = MARGIN;
  const area = { left, right: width - MARGIN.right, top, bottom: height - MARGIN.bottom };
  const plot = new Plot(area, most);
  const attributes = { role: 'img', 'aria-label': label, viewBox: `0 0 ${width} ${height}` };
  const root = svgElement('svg', attributes, plot.grid(format));
  box.replaceChildren(root);
  return { root, plot };
}

/** Whether a limit belongs into a chart whose other values reach `most`. */
export function isInReach(limit, most) {
  return limit !== null && limit <= most * FAR_ABOVE;
}

/** Draws a limit as a dashed line with its name. */
export function drawLimit(root, limit, line, label, more = '') {
  if (line !== undefined) root.append(svgElement('line', { class: 'limit', ...line }));
  root.append(svgElement('text', { class: 'limit-label', ...label }, `limit ${shownCount(limit)}${more}`));
}

/** Shows what `describe` gives for the place of the pointer: a title and lines; and a rule at its x. */
export function describeOnHover({ root, plot }, describe) {
  const tip = byId('tip');
  const rule = svgElement('line', { class: 'rule', y1: plot.area.top, y2: plot.area.bottom });
  const hide = () => {
    tip.hidden = true;
    rule.remove();
  };
  root.addEventListener('pointerleave', hide);
  root.addEventListener('pointermove', (event) => {
    const found = describe(plot.shareAt(event.clientX - root.getBoundingClientRect().left));
    if (found === undefined) return hide();
    for (const end of ['x1', 'x2']) rule.setAttribute(end, plot.x(found.share));
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
