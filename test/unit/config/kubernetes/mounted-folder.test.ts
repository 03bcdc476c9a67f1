import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { MountedFolder } from '../../../../src/config/kubernetes/mounted-folder.ts';
import { FileSource } from '../../../../src/config/reader/file-source.ts';
import { type ConfigMap, mountConfigMap } from '../../../fixtures/config-map.ts';

const HOUR_MS = 3_600_000;
let mount: ConfigMap;
let source: FileSource;
let folder: MountedFolder;

beforeEach(async () => {
  mount = mountConfigMap({ 'limits.yaml': 'one' });
  source = new FileSource();
  folder = new MountedFolder(mount.folder, source);
  await folder.poll(0);
});
afterEach(() => mount.remove());

const inForce = () => source.read(join(mount.folder, 'limits.yaml'), '');
const deliver = (text: string, nowMs: number) => folder.delivered(new Map([['limits.yaml', text]]), nowMs);
async function swap(text: string, nowMs: number): Promise<void> {
  mount.swap({ 'limits.yaml': text });
  await folder.poll(nowMs);
}

it('reads the mount until something is delivered', async () => {
  expect(inForce()).toBe('one');
  await swap('two', 1_000);
  expect(inForce()).toBe('two');
});

it('a mount that lags behind does not revert the delivered version', async () => {
  deliver('three', 1_000);
  expect(inForce()).toBe('three');
  await swap('two', 2_000);
  expect(inForce()).toBe('three');
});

it('a mount that lags behind does not revert it when the watch is lost either', async () => {
  deliver('three', 1_000);
  folder.lost();
  await folder.poll(2_000);
  expect(inForce()).toBe('three');
  await swap('two', 90_000);
  expect(inForce()).toBe('three');
  await folder.poll(HOUR_MS);
  expect(inForce()).toBe('three');
});

it('without the watch, a mount that had caught up and changes is in force, an old version included', async () => {
  deliver('two', 1_000);
  await swap('two', 60_000);
  folder.lost();
  expect(inForce()).toBe('two');
  await swap('one', 61_000);
  expect(inForce()).toBe('one');
  await swap('three', 62_000);
  expect(inForce()).toBe('three');
});

it('a change of the mount before the loss was detected is in force afterwards', async () => {
  deliver('one', 1_000);
  await swap('two', 60_000);
  expect(inForce()).toBe('one');
  folder.lost();
  expect(inForce()).toBe('two');
});

it('without the watch, a mount that changes long after is in force', async () => {
  deliver('three', 1_000);
  folder.lost();
  await swap('four', HOUR_MS);
  expect(inForce()).toBe('four');
});

it('a change of the mount long after the delivery is not in force while the watch lives', async () => {
  deliver('three', 1_000);
  folder.confirmed(HOUR_MS);
  await swap('two', HOUR_MS + 1_000);
  folder.lost();
  expect(inForce()).toBe('three');
});

it('what is delivered after a loss is in force again', async () => {
  deliver('two', 1_000);
  await swap('two', 2_000);
  folder.lost();
  await swap('three', 3_000);
  deliver('four', 4_000);
  expect(inForce()).toBe('four');
});

it('a key that a delivered folder lacks is a missing file', () => {
  folder.delivered(new Map([['others.yaml', '']]), 1_000);
  expect(() => inForce()).toThrow('does not exist');
});
