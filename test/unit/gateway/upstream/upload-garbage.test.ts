import { expect, it } from 'vitest';
import { countUploaded } from '../../../../src/gateway/upstream/upload-garbage.ts';

const PIECE_BYTES = 65_536;
const MIB = 1024 * 1024;

it('frees the buffers of an upload long before V8 would', () => {
  const before = process.memoryUsage().arrayBuffers;
  let most = 0;
  for (let bytes = 0; bytes < 30 * MIB; bytes += PIECE_BYTES) {
    Buffer.allocUnsafeSlow(PIECE_BYTES);
    countUploaded(PIECE_BYTES);
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
  }
  // Collected after every 4 MiB; the next collection at the latest has freed what one has found.
  expect(most).toBeLessThan(16 * MIB);
});
