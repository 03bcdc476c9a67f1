import { mkdtempSync, readFileSync, rmSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ConfigError, formatProblem } from '../../../src/config/problem.ts';
import { type Watch, watchFiles } from '../../../src/config/watch.ts';
import { type ConfigMap, mountConfigMap } from '../../fixtures/config-map.ts';

let folder: string;
let watch: Watch | undefined;
let configMap: ConfigMap | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-watch-'));
});
afterEach(() => {
  watch?.close();
  rmSync(folder, { recursive: true });
  configMap?.remove();
  configMap = undefined;
});

/** Watches one file whose text is the value; a text that says `bad` is refused. */
function watchText(file: string, intervalMs = 3_600_000) {
  const events: string[] = [];
  watch = watchFiles<string>({
    current: readFileSync(file, 'utf8'),
    files: () => [file],
    load() {
      const text = readFileSync(file, 'utf8');
      if (text.includes('bad')) throw new ConfigError([{ source: 'f', path: '', message: text }]);
      return text;
    },
    onLoad: (text) => events.push(`loaded ${text}`),
    onProblems: (problems) => events.push(`refused ${problems.map(formatProblem)}`),
    intervalMs,
  });
  const current = watch;
  return {
    events,
    /** Two looks: the one that sees a change and the one that takes it. */
    async look() {
      await current.poll();
      await current.poll();
    },
  };
}

describe('a watched file', () => {
  test('is read again after a change, once', async () => {
    const file = join(folder, 'f');
    writeFileSync(file, 'one');
    const { events, look } = watchText(file);
    await look();
    writeFileSync(file, 'two');
    await look();
    await look();
    expect(events).toEqual(['loaded two']);
  });

  test('that changed before the first poll is read as well', async () => {
    const file = join(folder, 'f');
    writeFileSync(file, 'one');
    const { events, look } = watchText(file);
    writeFileSync(file, 'two');
    await look();
    expect(events).toEqual(['loaded two']);
  });

  test('that was only touched is not reported', async () => {
    const file = join(folder, 'f');
    writeFileSync(file, 'one');
    const { events, look } = watchText(file);
    await look();
    utimesSync(file, 5, 5);
    await look();
    expect(events).toEqual([]);
  });

  test('is left alone while it is still being written', async () => {
    const file = join(folder, 'f');
    writeFileSync(file, 'one');
    const { events } = watchText(file);
    await watch?.poll();
    writeFileSync(file, 'tw');
    await watch?.poll();
    writeFileSync(file, 'two!');
    await watch?.poll();
    expect(events).toEqual([]);
    await watch?.poll();
    expect(events).toEqual(['loaded two!']);
  });

  test('is followed through the swap of a ConfigMap', async () => {
    configMap = mountConfigMap({ 'limits.yaml': 'one' });
    const file = configMap.file('limits.yaml');
    const { events, look } = watchText(file);
    await look();
    configMap.swap({ 'limits.yaml': 'two' });
    await look();
    configMap.swap({ 'limits.yaml': 'six' });
    await look();
    expect(events).toEqual(['loaded two', 'loaded six']);
  });

  test('that is invalid is reported once, and its fix is loaded, even if it restores the previous content', async () => {
    const file = join(folder, 'f');
    writeFileSync(file, 'one');
    const { events, look } = watchText(file);
    await look();
    writeFileSync(file, 'bad');
    await look();
    await look();
    writeFileSync(file, 'one');
    await look();
    expect(events).toEqual(['refused f: bad', 'loaded one']);
  });

  test('that disappears is reported, and loaded again when it reappears', async () => {
    const file = join(folder, 'f');
    writeFileSync(file, 'one');
    const { events, look } = watchText(file);
    await look();
    unlinkSync(file);
    await look();
    writeFileSync(file, 'back');
    await look();
    expect(events).toEqual([
      expect.stringMatching(/^refused configuration: could not be reloaded: .*ENOENT/),
      'loaded back',
    ]);
  });

  test('in a folder that cannot be read for a while is reported once, and in force again afterwards', async () => {
    const file = join(folder, 'f');
    writeFileSync(file, 'one');
    let isUnreadable = false;
    const files = () => {
      if (isUnreadable) throw new Error('EMFILE: too many open files, scandir');
      return [file];
    };
    const events: string[] = [];
    watch = watchFiles<string>({
      current: 'one',
      files,
      load: () => readFileSync(files()[0] ?? '', 'utf8'),
      onLoad: (text) => events.push(`loaded ${text}`),
      onProblems: (problems) => events.push(`refused ${problems.map(formatProblem)}`),
      intervalMs: 3_600_000,
    });
    for (const unreadable of [false, true, false, true, false]) {
      isUnreadable = unreadable;
      for (let count = 0; count < 4; count++) await watch.poll();
    }
    const refused =
      'refused configuration: could not be reloaded: Error: EMFILE: too many open files, scandir';
    expect(events).toEqual([refused, 'loaded one', refused, 'loaded one']);
  });

  test('is not looked at again once it was closed during a look', async () => {
    const file = join(folder, 'f');
    writeFileSync(file, 'one');
    let looks = 0;
    const closed = watchFiles<string>({
      current: 'one',
      files: () => [file],
      async stateOf() {
        looks += 1;
        closed.close();
        return 'one';
      },
      load: () => 'one',
      onLoad() {},
      onProblems() {},
      intervalMs: 1,
    });
    await vi.waitFor(() => expect(looks).toBe(1));
    await setTimeout(50);
    expect(looks).toBe(1);
  });

  test('is noticed by the clock, without anyone looking', async () => {
    configMap = mountConfigMap({ 'limits.yaml': 'one' });
    const file = configMap.file('limits.yaml');
    const { events } = watchText(file, 5);
    configMap.swap({ 'limits.yaml': 'two' });
    await vi.waitFor(() => expect(events).toEqual(['loaded two']));
  });

  test('is not looked at any more after close', async () => {
    const file = join(folder, 'f');
    writeFileSync(file, 'one');
    const { events, look } = watchText(file);
    watch?.close();
    writeFileSync(file, 'two');
    await look();
    expect(events).toEqual([]);
  });
});
