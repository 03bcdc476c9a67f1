/** Line charts: panels one below the other that share their horizontal axis, with marks for events. */
import { DARK, GREEN, GREY, legend, RED, svg, text, WIDTH } from './svg.ts';

export interface LineChart {
  readonly title: string;
  readonly subtitle: string;
  /** What the horizontal axis shows, with its unit. */
  readonly across: string;
  readonly panels: readonly Panel[];
  readonly marks: readonly Mark[];
}

export interface Panel {
  /** What the vertical axis shows, with its unit. */
  readonly title: string;
  readonly lines: readonly Line[];
}

export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

export interface Mark {
  readonly name: string;
  readonly x: number;
}

const [LEFT, RIGHT] = [70, WIDTH - 20];
const [HEAD_HEIGHT, PANEL_HEIGHT, PANEL_GAP] = [92, 130, 44];
const LINE_COLORS = [GREEN, '#c77700', '#6b7785'];
const MARK_COLORS = [RED, '#2457a6', '#8a4fbf', DARK];
const TICKS = 4;

export function drawLines({ title, subtitle, across, panels, marks }: LineChart): string {
  const xs = panels.flatMap(({ lines }) => lines.flatMap(({ points }) => points.map(([x]) => x)));
  const right = Math.max(...xs, 1);
  const xOf = (x: number) => LEFT + (x / right) * (RIGHT - LEFT);
  const height = HEAD_HEIGHT + panels.length * (PANEL_HEIGHT + PANEL_GAP) + 20;
  const bodies = panels.map((panel, index) =>
    drawPanel(panel, HEAD_HEIGHT + 20 + index * (PANEL_HEIGHT + PANEL_GAP), { xOf, right, marks }),
  );
  const names = [...new Set(marks.map(({ name }) => name))];
  return svg(title, subtitle, height, [
    legend(
      names.map((name, index) => [`│ ${name}`, MARK_COLORS[index % MARK_COLORS.length] ?? '']),
      20,
      76,
    ),
    ...bodies,
    text((LEFT + RIGHT) / 2, height - 8, across, `text-anchor="middle" fill="${GREY}"`),
  ]);
}

interface Frame {
  readonly xOf: (x: number) => number;
  readonly right: number;
  readonly marks: readonly Mark[];
}

function drawPanel({ title, lines }: Panel, top: number, { xOf, right, marks }: Frame): string {
  const highest = Math.max(...lines.flatMap(({ points }) => points.map(([, y]) => y)), 0);
  const step = niceStep(highest / TICKS || 1);
  const ceiling = Math.max(step, Math.ceil(highest / step) * step);
  const bottom = top + PANEL_HEIGHT;
  const yOf = (y: number) => bottom - (y / ceiling) * PANEL_HEIGHT;
  const parts = [text(20, top - 8, title, 'font-weight="600" fill="#16202a"')];
  for (let y = 0; y <= ceiling + step / 2; y += step) {
    parts.push(`<path d="M${LEFT} ${yOf(y).toFixed(1)}H${RIGHT}" stroke="#e3e7eb"/>`);
    parts.push(text(LEFT - 8, yOf(y) + 4, shown(y), 'text-anchor="end" fill="#5a6672"'));
  }
  const acrossStep = niceStep(right / 8);
  for (let x = 0; x <= right; x += acrossStep) {
    parts.push(text(xOf(x), bottom + 15, shown(x), 'text-anchor="middle" fill="#5a6672"'));
  }
  const names = [...new Set(marks.map(({ name }) => name))];
  for (const { name, x } of marks) {
    const color = MARK_COLORS[names.indexOf(name) % MARK_COLORS.length];
    parts.push(`<path d="M${xOf(x).toFixed(1)} ${top}V${bottom}" stroke="${color}" stroke-opacity="0.45"/>`);
  }
  for (const [index, { points }] of lines.entries()) {
    const path = points.map(([x, y]) => `${xOf(x).toFixed(1)},${yOf(y).toFixed(1)}`).join(' ');
    parts.push(
      `<polyline points="${path}" fill="none" stroke="${LINE_COLORS[index % LINE_COLORS.length]}" stroke-width="1.6"/>`,
    );
  }
  const entries = lines.map(({ name }, index): [string, string] => [
    `— ${name}`,
    LINE_COLORS[index % LINE_COLORS.length] ?? '',
  ]);
  parts.push(legend(entries, 300, top - 8));
  return parts.join('\n');
}

/** 1, 2 or 5 times a power of ten: the least that is not below `least`. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least) ?? power;
}

function shown(value: number): string {
  return Number(value.toPrecision(6)).toLocaleString('en');
}
