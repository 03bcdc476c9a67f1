import { request as requestHttp } from 'node:http';
import { type RequestOptions, request as requestHttps } from 'node:https';
import type { Settings } from '../../config/settings/settings.ts';
import { tlsOptions } from '../../domain/connections/tls-files.ts';
import { errorText, noTlsText } from '../../domain/shown.ts';

/** The result of trying one connection. */
export interface ConnectionResult {
  /** What was tried, such as `store redis://127.0.0.1:6379`. */
  readonly name: string;
  readonly outcome: 'ok' | 'warning' | 'failed';
  readonly text: string;
}

type Place = Pick<Settings['upstream'], 'url' | 'tls'>;

/** Time limit for the response of an upstream. */
const ANSWER_MS = 10_000;

/** Sends a HEAD, which is safe (RFC 9110 section 9.2.1), to each upstream. Any status below 500 is a success. */
export function tryUpstreams(settings: Settings['upstream']): readonly Promise<ConnectionResult>[] {
  return [
    tryUpstream('upstream', settings),
    ...settings.routes.map((route) => tryUpstream(`upstream ${route.prefix}`, route)),
  ];
}

async function tryUpstream(label: string, place: Place): Promise<ConnectionResult> {
  const name = `${label} ${place.url}`;
  try {
    const status = await ask(place);
    const text = `answers HEAD ${new URL(place.url).pathname} with ${status}`;
    return { name, outcome: status < 500 ? 'ok' : 'warning', text };
  } catch (error) {
    return { name, outcome: 'failed', text: reasonOf(error) };
  }
}

function ask({ url, tls }: Place): Promise<number> {
  const options: RequestOptions = {
    method: 'HEAD',
    agent: false,
    signal: AbortSignal.timeout(ANSWER_MS),
    rejectUnauthorized: tls?.verify ?? true,
    ...tlsOptions(tls),
  };
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? requestHttps : requestHttp;
    const request = send(url, options, (response) => {
      response.destroy();
      resolve(response.statusCode ?? 0);
    });
    request.on('error', reject);
    request.end();
  });
}

export function reasonOf(error: unknown): string {
  const message = errorText(error);
  if (!(error instanceof Error)) return message;
  if (error.name === 'AbortError') return `no answer within ${ANSWER_MS / 1000} s`;
  const { code = '' } = error as NodeJS.ErrnoException;
  if (message === 'socket hang up') return 'the connection was closed before an answer';
  if (code.startsWith('HPE_')) return `what it answers is not HTTP (${message})`;
  return noTlsText(message) ?? message;
}
