/**
 * Express: asks Weir about each request, and sends its refusal to the client. `app.use(weir('http://127.0.0.1:9000'))`
 * Handlers find out who calls from `X-Account-Id` and the other fields that the gateway sets. Behind a proxy, set Express's `trust proxy`.
 *
 * With `{ hold: '60s' }`, it also reports the end of each request, so that limits on requests in flight apply. A route that knows the
 * cost of its response sets `response.locals.cost`; a response of 5xx costs nothing, and others cost what was reserved.
 */
import { decide, setCaller, settle } from './ask.mjs';

export const weir = (url, { hold } = {}) => async (request, response, next) => {
  const { method, originalUrl: path, headers, ip } = request;
  let answer;
  try {
    answer = await decide(url, { method, path, hold }, (name) => headers[name], ip);
  } catch (error) {
    return next(error);
  }
  const ended = () => settle(url, answer, response.statusCode >= 500 ? 0 : (response.locals.cost ?? answer.cost));
  if (answer?.receipt) response.destroyed ? ended() : response.on('close', ended);
  setCaller(headers, answer);
  // Without an answer the request is served, uncounted.
  response.set(answer?.headers ?? { 'Service-RateLimit-Mode': 'degraded' });
  if (answer?.allowed === false) response.status(answer.status).type('application/problem+json').send(answer.problem);
  else next();
};
