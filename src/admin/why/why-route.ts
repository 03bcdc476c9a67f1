import type { FastifyInstance } from 'fastify';
import { shownCount } from '../../domain/shown.ts';
import { KEPT_HOURS } from './id-index.ts';
import { type ShownRefusal, shownRefusal } from './shown-refusal.ts';
import type { Why } from './why-refused.ts';

/** The answer to `GET /refusals/{requestId}`. */
export interface WhyAnswer {
  readonly requestId: string;
  /** The last one first: clients may use an id twice. */
  readonly refusals: readonly ShownRefusal[];
}

/** Another replica writes what it has refused once a second. */
const AGAIN_MS = 700;

/** Adds `GET /refusals/{requestId}`: 404 where no 429 of the request within a day is known, 503 while Redis cannot be read. */
export function addWhyRoute(app: FastifyInstance, why: Why): void {
  app.get<{ Params: { requestId: string } }>(
    '/refusals/:requestId',
    async ({ params: { requestId } }, reply) => {
      const found = await findTwice(why, requestId);
      if (found === undefined)
        return reply.code(503).send({ error: 'Refusals are in Redis, which cannot be read.' });
      if (found.length > 0) return { requestId, refusals: found.map((one) => shownRefusal(requestId, one)) };
      const unfindable = (await why.unfindable()) ?? 0;
      const flood =
        unfindable === 0
          ? ''
          : ` ${shownCount(unfindable)} requests with a 429 cannot be found, because a flood had more than Weir keeps.`;
      return reply.code(404).send({
        error: `No 429 of a request with the id ${requestId} is known. Refusals are kept for ${KEPT_HOURS} h, and are lost if Redis loses its data.${flood} The access log has every request.`,
        code: 'unknown',
      });
    },
  );
}

async function findTwice(why: Why, requestId: string): ReturnType<Why['find']> {
  const found = await why.find(requestId);
  if (found === undefined || found.length > 0) return found;
  await new Promise((resume) => setTimeout(resume, AGAIN_MS));
  return why.find(requestId);
}
