/** The end of every script: figures as text for the terminal and as JSON in the file that SUMMARY names. */

interface Metric {
  readonly values: Readonly<Record<string, number>>;
  readonly thresholds?: Readonly<Record<string, { readonly ok: boolean }>>;
}

interface Data {
  readonly metrics: Readonly<Record<string, Metric>>;
}

const SHOWN = ['http_reqs', 'http_req_duration', 'checks', 'refused', 'degraded', 'dropped_iterations'];

export function handleSummary({ metrics }: Data): Record<string, string> {
  const lines = SHOWN.flatMap((name) => {
    const metric = metrics[name];
    return metric === undefined ? [] : [`  ${name.padEnd(20)} ${valuesOf(metric)}`];
  });
  for (const [name, { thresholds = {} }] of Object.entries(metrics)) {
    for (const [rule, { ok }] of Object.entries(thresholds)) {
      lines.push(`  ${ok ? 'kept  ' : 'BROKEN'} ${name}: ${rule}`);
    }
  }
  const text = `${lines.join('\n')}\n`;
  const file = __ENV.SUMMARY;
  return file === undefined
    ? { stdout: text }
    : { stdout: text, [file]: JSON.stringify({ metrics }, null, 1) };
}

function valuesOf({ values }: Metric): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}=${Number.isInteger(value) ? value : value.toFixed(3)}`)
    .join(' ');
}
