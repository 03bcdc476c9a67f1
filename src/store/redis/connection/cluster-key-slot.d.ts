declare module 'cluster-key-slot' {
  /** The Cluster slot of a key: CRC16 of its hash tag, modulo 16,384. */
  function calculateSlot(key: string): number;
  export = calculateSlot;
}
