/** What the middlewares beside this file share. Copy it with the one that you use. */

/**
 * Weir's decision on a request; undefined if Weir does not answer. Such a request is served, uncounted.
 *
 * @param question `method` and `path` of the request, and `hold` if its end is reported
 * @param field reads a field of the request
 * @param address of the client, for limits and blocks by address. Weir believes it if this program is in `decisions.trusted`
 * @throws Error if Weir does not let this program ask
 */
export async function decide(url, question, field, address) {
  const token = /^Bearer (.+)$/i.exec(field('authorization') ?? '')?.[1];
  const serviceAccount = field('x-service-account') ?? undefined;
  const request = new Request(`${url}/decide`, {
    method: 'POST',
    headers: { 'X-Forwarded-For': address ?? '' },
    body: JSON.stringify({ token, serviceAccount, ...question }),
    signal: AbortSignal.timeout(250),
  });
  const [status, text] = await fetch(request)
    .then(async (reply) => [reply.status, await reply.text()])
    .catch(() => [503]);
  if (status >= 500) return undefined;
  const answer = JSON.parse(text);
  if (status === 200) return answer;
  if (status === 401 || status === 403) throw new Error(`Weir does not let this program ask: ${answer.detail}`);
  // Weir cannot read the question, because the path of the request is too long for example.
  return { allowed: false, status, headers: {}, problem: answer };
}

/** Reports what a held decision has cost. What Weir does not get to know costs what was reserved. */
export function settle(url, { receipt }, cost) {
  fetch(`${url}/settle`, { method: 'POST', body: JSON.stringify({ receipt, cost }) }).catch(() => undefined);
}

/**
 * Gives the fields of a request the caller of the decision, as the gateway does: a client could send them itself.
 *
 * @param fields by their names in lower case
 */
export function setCaller(fields, answer) {
  const caller = {
    'x-account-id': answer?.account,
    'x-organization-id': answer?.organization,
    'x-principal-id': answer?.principal,
    'x-principal-type': answer?.principalType,
    'x-client-certificate-subject': undefined,
  };
  for (const name in caller) {
    if (caller[name]) fields[name] = caller[name];
    else delete fields[name];
  }
  // Nobody has checked whether the client may act for this Account.
  if (answer?.account === null) delete fields['x-service-account'];
  return fields;
}

/** The response. Calls `ended` when its body has ended or nobody reads it any more, and at once if no body is sent. */
export function watched(response, method, ended) {
  if (!response.body || method === 'HEAD') {
    ended();
    return response;
  }
  const reader = response.body.getReader();
  reader.closed.then(ended, ended);
  const source = {
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  };
  return new Response(new ReadableStream(source, { highWaterMark: 0 }), response);
}
