import { expect, it } from 'vitest';
import { countBuffer } from '../../../../src/http/message/buffer-garbage.ts';

const PIECE_BYTES = 65_536;
const MIB = 1024 * 1024;
const IS_BEFORE_NODE_24 = Number.parseInt(process.versions.node, 10) < 24;

it.skipIf(IS_BEFORE_NODE_24)('frees buffers long before V8 would; before Node 24, V8 is left alone', () => {
  const before = process.memoryUsage().arrayBuffers;
  let most = 0;
  for (let bytes = 0; bytes < 30 * MIB; bytes += PIECE_BYTES) {
    countBuffer(Buffer.allocUnsafeSlow(PIECE_BYTES));
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
  }
  // Collected after every 4 MiB; the next collection at the latest has freed what one has found.
  expect(most).toBeLessThan(16 * MIB);
});
