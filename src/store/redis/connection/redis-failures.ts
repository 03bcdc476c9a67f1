import type { UncountedReason } from '../../store.ts';

/** Reasons by the first word of a Redis error or the code of a Node.js error. */
const REASONS: ReadonlyMap<string, UncountedReason> = new Map([
  ['WRONGPASS', 'auth'],
  ['NOAUTH', 'auth'],
  ['NOPERM', 'auth'],
  // Protected mode: without a password, only local clients may connect.
  ['DENIED', 'auth'],
  ['LOADING', 'loading'],
  ['READONLY', 'readonly'],
  ['NOREPLICAS', 'readonly'],
  ['MASTERDOWN', 'readonly'],
  ['OOM', 'oom'],
  ['BUSY', 'busy'],
  ['MISCONF', 'misconf'],
  ['CLUSTERDOWN', 'clusterdown'],
  ['MOVED', 'redirected'],
  ['ASK', 'redirected'],
  ['TRYAGAIN', 'redirected'],
  ['WRONGTYPE', 'wrongtype'],
  ['WRONGVALUE', 'wrongvalue'],
  ['PERIOD', 'clock'],
  ['RECOVERING', 'recovering'],
  ['CROSSSLOT', 'invalid'],
]);

/** ioredis's messages for a failed connection. */
const DISCONNECTED =
  /connection (is |was )?closed?|isn't writeable|isn't ready|is ended|ECONN|ETIMEDOUT|timed out|EHOSTUNREACH|ENETUNREACH|EPIPE|ENOTFOUND|EAI_AGAIN|socket|sentinels? |startup nodes|slots cache|max retries|^timeout$/i;

const ENDED_BEFORE_ANSWER =
  /^Connection is closed|^Reached the max retries|^Command aborted due to connection close/;

const LAST_ERROR = ' Last error: ';

/** What Redis 6 puts before the error of a command that a script called. Redis 7 puts the script behind it. */
const IN_SCRIPT = 'ERR Error running script ';

/** The reason for an error of Redis or of its connection. */
export function reasonOf(message: string): UncountedReason {
  const cause = causeOfSentinels(message);
  if (cause !== '') return reasonOf(cause);
  const known = REASONS.get(firstWord(message));
  if (known !== undefined) return known;
  if (message.includes('max number of clients')) return 'maxclients';
  if (message.includes('Too many Cluster redirections')) {
    return message.includes('CLUSTERDOWN') ? 'clusterdown' : 'redirected';
  }
  if (/WRONGPASS|user executing the script can't|ACL failure in script|certificate|TLS/i.test(message))
    return 'auth';
  return DISCONNECTED.test(message) ? 'disconnected' : 'error';
}

/** Whether a server refuses a command because it is a replica. */
export function isOfReplica(message: string): boolean {
  return ['READONLY', 'MASTERDOWN'].includes(firstWord(message));
}

/** The code of an error of Redis. */
function firstWord(message: string): string {
  const at = message.startsWith(IN_SCRIPT) ? message.indexOf(': -') : -1;
  const error = at === -1 ? message : message.slice(at + ': -'.length);
  return error.split(' ', 1)[0] ?? '';
}

/**
 * An error of Redis or of its connection, for an operator. ioredis's own texts count a Sentinel that answers as unreachable, and name
 * options of ioredis.
 */
export function shownError(message: string): string {
  if (message.startsWith('All sentinels ')) {
    const cause = causeOfSentinels(message);
    return `no Sentinel names a primary${cause === '' ? '' : `: ${shownOfSentinel(cause)}`}`;
  }
  if (message.startsWith('Reached the max retries')) return 'the connection was lost before Redis answered';
  if (message === 'timeout') return 'a node of the Cluster did not list its slots in time';
  if (message.includes('enableOfflineQueue')) return 'the connection is not ready';
  if (message.startsWith('Unknown RESP type '))
    return 'the answer is not from a Redis, or not in its protocol';
  // Redis advises on its protocol.
  if (firstWord(message) === 'NOAUTH')
    return 'NOAUTH Redis requires a password, and the settings have none: set store.password';
  return message;
}

function shownOfSentinel(cause: string): string {
  return firstWord(cause) === 'NOAUTH'
    ? 'NOAUTH the Sentinels require a password, and the first URL of store.sentinels has none'
    : shownError(cause);
}

/** Whether this is ioredis's error for a command whose connection ended after it was sent. */
export function mayHaveRun(message: string): boolean {
  return ENDED_BEFORE_ANSWER.test(message);
}

/** The error of the last sentinel, or an empty text. */
function causeOfSentinels(message: string): string {
  const at = message.startsWith('All sentinels ') ? message.lastIndexOf(LAST_ERROR) : -1;
  return at === -1 ? '' : message.slice(at + LAST_ERROR.length);
}
