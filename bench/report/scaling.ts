import type { Scaling, ScalingPoint } from '../measure/scaling.ts';

/** How Weir (redis) takes more processes and more Accounts, as Markdown. */
export function scalingTable({ accounts, cores, processes }: Scaling): string {
  const between = cores === undefined ? 'all cores' : cores === 1 ? 'one core' : `${cores} cores`;
  return [
    `The processes had ${between} between them.`,
    '',
    '| Weir (redis) | requests/s | CPU µs/request: gateway | + Redis |',
    '|---|--:|--:|--:|',
    ...processes.map((point) => line(`${point.count} ${point.count === 1 ? 'process' : 'processes'}`, point)),
    ...accounts.map((point) => line(`${point.count.toLocaleString('en')} Accounts`, point)),
    '',
  ].join('\n');
}

function line(name: string, { gatewayCpuUs, redisCpuUs, requestsPerSecond }: ScalingPoint): string {
  const cells = [requestsPerSecond.toLocaleString('en'), gatewayCpuUs.toFixed(1), redisCpuUs.toFixed(1)];
  return `| ${name} | ${cells.join(' | ')} |`;
}
