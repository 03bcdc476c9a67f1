import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ReportData } from './data.ts';

/** In the order of their dependencies. */
const SCRIPTS = ['format.js', 'plot.js', 'time-chart.js', 'histogram.js', 'table.js', 'page.js'];

/**
 * A replay's report as one HTML page with its styles, scripts and data. Its content security policy does not let it load
 * anything.
 */
export function reportHtml(data: ReportData): string {
  const style = asset('page.css');
  const script = SCRIPTS.map((name) => withoutModules(asset(`browser/${name}`))).join('\n');
  const parts: Readonly<Record<string, string>> = {
    POLICY: `default-src 'none'; style-src '${digest(style)}'; script-src '${digest(script)}'; base-uri 'none'; form-action 'none'`,
    STYLE: style,
    SCRIPT: script,
    // A `<` could end the element that contains the data.
    DATA: JSON.stringify(data).replaceAll('<', '\\u003c'),
  };
  return asset('page.html').replace(/\{\{(\w+)\}\}/g, (_, name: string) => parts[name] ?? '');
}

function asset(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}

/** The scripts are modules for editors and linters. In the page they share one scope. */
function withoutModules(script: string): string {
  return script.replace(/^import [^;]*;\n/gm, '').replace(/^export /gm, '');
}

function digest(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
