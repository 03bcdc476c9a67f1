import { drawLines, type Panel } from '../report/lines.ts';
import type { Run, Sample } from './run.ts';

const EVENT_NAMES = {
  reload: 'limits changed',
  deploy: 'replicas replaced',
  failover: 'Redis failed over',
  kill: 'replica killed',
  loss: 'Redis emptied',
};

/** Latency, load, memory and handles over time, with the events. */
export function plotOf({ samples, events, hardware, date, rate }: Run): string {
  const line = (name: string, read: (sample: Sample) => number | undefined) => ({
    name,
    points: samples.flatMap((sample): [number, number][] => {
      const value = read(sample);
      return value === undefined ? [] : [[sample.seconds / 60, value]];
    }),
  });
  const panels: Panel[] = [
    {
      title: 'Latency of an interval, ms',
      lines: [line('p99', ({ seen }) => seen.p99Ms), line('p50', ({ seen }) => seen.p50Ms)],
    },
    { title: 'Load average of the machine', lines: [line('one minute', ({ load }) => load)] },
    {
      title: 'Resident memory, MB',
      lines: [
        line('replica that stays', ({ replicas }) => replicas[0]?.residentMb),
        line('its heap after a forced collection', ({ heapMb }) => heapMb),
        line('newest replica', ({ replicas }) => replicas.at(-1)?.residentMb),
        line('Redis', ({ redisMb }) => redisMb || undefined),
      ],
    },
    {
      title: 'Open handles',
      lines: [
        line('replica that stays', ({ replicas }) => replicas[0]?.handles),
        line('newest replica', ({ replicas }) => replicas.at(-1)?.handles),
      ],
    },
  ];
  return drawLines({
    title: 'Soak',
    subtitle: `${rate} requests/s through three replicas; ${hardware}, ${date.slice(0, 10)}`,
    across: 'minutes',
    panels,
    marks: events.map(({ kind, seconds }) => ({ name: EVENT_NAMES[kind], x: seconds / 60 })),
  });
}
