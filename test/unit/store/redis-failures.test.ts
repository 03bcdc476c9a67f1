import { expect, test } from 'vitest';
import { reasonOf, shownError } from '../../../src/store/redis/connection/redis-failures.ts';

test.each([
  ['WRONGPASS invalid username-password pair or user is disabled.', 'auth'],
  ['NOAUTH HELLO must be called with the client already authenticated', 'auth'],
  [
    "ERR The user executing the script can't run this command or subcommand script: caee, on @user_script:1.",
    'auth',
  ],
  [
    "ERR ACL failure in script: User reader has no permissions to run the 'set' command script: 52df, on @user_script:1.",
    'auth',
  ],
  ["NOPERM this user has no permissions to run the 'evalsha' command", 'auth'],
  ['self-signed certificate in certificate chain', 'auth'],
  ['LOADING Redis is loading the dataset in memory', 'loading'],
  ["READONLY You can't write against a read only replica. script: 4f3c", 'readonly'],
  [
    "ERR Error running script (call to f_9059): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.",
    'readonly',
  ],
  ['ERR Error running script (call to f_9059): @user_script:1: something new', 'error'],
  ["OOM command not allowed when used memory > 'maxmemory'. script: 4f3c", 'oom'],
  ['BUSY Redis is busy running a script. You can only call SCRIPT KILL', 'busy'],
  ['MISCONF Redis is configured to save RDB snapshots', 'misconf'],
  ['CLUSTERDOWN The cluster is down', 'clusterdown'],
  ['Too many Cluster redirections. Last error: ReplyError: MOVED 1 127.0.0.1:7000', 'redirected'],
  ['TRYAGAIN Multiple keys request during rehashing of slot', 'redirected'],
  ['WRONGTYPE Operation against a key holding the wrong kind of value', 'wrongtype'],
  ['WRONGVALUE no release has written this value', 'wrongvalue'],
  ["CROSSSLOT Keys in request don't hash to the same slot", 'invalid'],
  ['ERR max number of clients reached', 'maxclients'],
  ['connect ECONNREFUSED 127.0.0.1:6379', 'disconnected'],
  ['Connection is closed.', 'disconnected'],
  ['Command aborted due to connection close', 'disconnected'],
  ["Stream isn't writeable and enableOfflineQueue options is false", 'disconnected'],
  ["Socket timeout. Expecting data, but didn't receive any in 1000ms.", 'disconnected'],
  ['All sentinels are unreachable. Retrying from scratch after 20ms.', 'disconnected'],
  ['Failed to refresh slots cache.', 'disconnected'],
  ['timeout', 'disconnected'],
  ['Reached the max retries per request limit (which is 0).', 'disconnected'],
  ['ERR something new', 'error'],
])('%s: %s', (message, reason) => {
  expect(reasonOf(message)).toBe(reason);
});

test.each([
  [
    'All sentinels are unreachable. Retrying from scratch after 306ms. Last error: ERR No such master with that name',
    'no Sentinel names a primary: ERR No such master with that name',
  ],
  ['All sentinels are unreachable and retry is disabled.', 'no Sentinel names a primary'],
  [
    'All sentinels are unreachable. Retrying from scratch after 306ms. Last error: NOAUTH HELLO must be called with the client already authenticated',
    'no Sentinel names a primary: NOAUTH the Sentinels require a password, and the first URL of store.sentinels has none',
  ],
  [
    'All sentinels are unreachable. Retrying from scratch after 306ms. Last error: Unknown RESP type 72 "H". Please report this.',
    'no Sentinel names a primary: the answer is not from a Redis, or not in its protocol',
  ],
  ["Stream isn't writeable and enableOfflineQueue options is false", 'the connection is not ready'],
  ['timeout', 'a node of the Cluster did not list its slots in time'],
  [
    'Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest" option for details.',
    'the connection was lost before Redis answered',
  ],
  ['Unknown RESP type 72 "H". Please report this.', 'the answer is not from a Redis, or not in its protocol'],
  [
    'NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used',
    'NOAUTH Redis requires a password, and the settings have none: set store.password',
  ],
  ['connect ECONNREFUSED 127.0.0.1:6379', 'connect ECONNREFUSED 127.0.0.1:6379'],
])('%s is shown as %s', (message, shown) => {
  expect(shownError(message)).toBe(shown);
});
