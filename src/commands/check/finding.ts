/** The result of trying one connection. */
export interface Finding {
  /** What was tried, such as `store redis://127.0.0.1:6379`. */
  readonly name: string;
  readonly outcome: 'ok' | 'warning' | 'failed';
  readonly text: string;
}
