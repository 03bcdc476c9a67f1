import type { Archive } from '../../store/shared-store.ts';

/** The archive of a process that is the only replica, in its memory. */
export function openMemoryArchive(nowMs: () => number): Archive {
  const kept = new Map<string, { readonly untilMs: number; readonly parts: Buffer[]; length: number }>();
  return {
    async append(name, bytes, lifeMs) {
      for (const [known, { untilMs }] of kept) {
        // They are in the order of their ends.
        if (untilMs > nowMs()) break;
        kept.delete(known);
      }
      const one = kept.get(name) ?? { untilMs: nowMs() + lifeMs, parts: [], length: 0 };
      kept.set(name, one);
      one.parts.push(bytes);
      one.length += bytes.length;
      return one.length;
    },
    async read(name) {
      const one = kept.get(name);
      if (one === undefined) return Buffer.alloc(0);
      const whole = Buffer.concat(one.parts);
      one.parts.splice(0, one.parts.length, whole);
      return whole;
    },
    close() {},
  };
}
