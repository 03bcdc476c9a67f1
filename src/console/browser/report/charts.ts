/** What the charts of the report have in common: a limit, and a tip that follows the pointer. */
import { shownCount, shownTime } from '../../../domain/shown.ts';
import { byId, element, svgElement } from '../widgets/dom.ts';
import type { Drawing, Plot } from '../widgets/plot.ts';

/** A limit far above everything else would press the rest flat: it is named at the top edge instead. */
const FAR_ABOVE = 4;

const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

/** A number on an axis, such as `0.025` or `1.2K`. */
export function short(value: number): string {
  return value !== 0 && Math.abs(value) < 10 ? String(Number(value.toPrecision(3))) : SHORT.format(value);
}

/** Whether a limit belongs into a chart whose other values reach `most`. */
export function isInReach(limit: number | null, most: number): limit is number {
  return limit !== null && limit <= most * FAR_ABOVE;
}

/** The name of a limit, right above a height or beside a line. */
export function limitLabel(
  limit: number,
  place: Readonly<Record<string, string | number>>,
  more = '',
): SVGTextElement {
  return svgElement('text', { class: 'limit-label', ...place }, `limit ${shownCount(limit)}${more}`);
}

/** What a tip says, and where its rule is drawn. */
interface Tip {
  readonly share: number;
  readonly title: string;
  readonly lines: readonly string[];
}

/** Shows what `describe` gives for the place of the pointer. */
export function describeOnHover(drawing: Drawing, describe: (share: number) => Tip | undefined): void {
  const { svg } = drawing;
  const tip = byId('tip');
  let rule: SVGLineElement | undefined;
  const hide = () => {
    tip.hidden = true;
    rule?.remove();
  };
  svg.addEventListener('pointerleave', hide);
  svg.addEventListener('pointermove', (event) => {
    hide();
    const found = describe(drawing.shareAt(event));
    if (found === undefined) return;
    rule = drawing.plot().upright(found.share, 'rule');
    svg.append(rule);
    showTip(tip, found, event);
  });
}

function showTip(tip: HTMLElement, { title, lines }: Tip, { clientX, clientY }: PointerEvent): void {
  tip.replaceChildren(element('b', {}, title), ...lines.map((line) => element('div', {}, line)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = clientX + 16 + width > innerWidth ? clientX - width - 16 : clientX + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, clientY - height - 12)}px`;
}

/** Labels of round times along the bottom. */
export function timeMarks(plot: Plot, fromMs: number, toMs: number): SVGElement[] {
  const { left, right } = plot.area;
  const most = Math.max(2, Math.floor((right - left) / 64));
  const span = toMs - fromMs;
  const step = STEPS_MS.find((one) => span / one <= most) ?? span / most;
  const marks: SVGElement[] = [];
  for (let at = Math.ceil(fromMs / step) * step; at <= toMs; at += step)
    marks.push(plot.mark((at - fromMs) / span, timeLabel(at, step)));
  return marks;
}

const STEPS_MS = [1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400, 604_800].map(
  (seconds) => seconds * 1_000,
);

function timeLabel(ms: number, stepMs: number): string {
  const text = shownTime(ms);
  if (stepMs >= 86_400_000 || text.endsWith('00:00:00')) return text.slice(5, 10);
  return text.slice(11, stepMs < 60_000 ? 19 : 16);
}
