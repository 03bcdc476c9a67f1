/** Lets a loop that polls be told to look at once. */
export interface Alarm {
  /**
   * Resolves after the polling interval, or as soon as `ring` is called. Set it before looking for work: what arrives
   * between the look and the wait is then not slept through.
   */
  set(): Promise<void>;
  ring(): void;
}

export function createAlarm(intervalMs: number): Alarm {
  let ring: () => void = () => undefined;
  return {
    set: () =>
      new Promise((resolve) => {
        const timer = setTimeout(resolve, intervalMs);
        ring = () => {
          clearTimeout(timer);
          resolve();
        };
      }),
    ring: () => ring(),
  };
}
