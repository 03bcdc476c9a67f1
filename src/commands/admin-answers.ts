/**
 * What answers of the admin port have at least: the members that commands read, and that replicas of 0.3.0 send as well. Commands know
 * by them whether a gateway answered.
 */
import { type TSchema, Type } from 'typebox';
import { Compile } from 'typebox/schema';

const text = Type.String();
const count = Type.Number();

/** Whether a body is what a path answers. Compiles the schema when the first answer is checked: a command needs one or two of them. */
function checkOf(schema: TSchema): (body: unknown) => boolean {
  let validator: ReturnType<typeof Compile> | undefined;
  return (body) => {
    validator ??= Compile(schema);
    return validator.Check(body);
  };
}

const limit = Type.Object({
  scope: text,
  id: text,
  bucket: text,
  limit: count,
  until: text,
  by: text,
  why: text,
});

/** The answer to a change of a block. */
export const isBlock = checkOf(limit);

/** Live limits and blocks. */
export const isLimits = checkOf(Type.Array(limit));

/** `GET /limits` */
export const isRows = checkOf(Type.Array(Type.Object({ bucket: text })));

/** `GET /changes` */
export const isChanges = checkOf(Type.Array(Type.Object({ at: text, kind: text, text })));

const named = Type.Object({ kind: text, id: text });

/** `GET /find` */
export const isFindResult = checkOf(
  Type.Object({
    q: text,
    found: Type.Array(Type.Intersect([named, Type.Object({ text })])),
    nearest: Type.Array(named),
  }),
);

/** `GET /refusals/{requestId}` */
export const isWhyAnswer = checkOf(
  Type.Object({
    requestId: text,
    refusals: Type.Array(
      Type.Object({ at: text, text, limit: Type.Object({}), filledBy: Type.Array(Type.Unknown()) }),
    ),
  }),
);

/** `GET /usage/accounts/{id}` */
export const isUsage = checkOf(
  Type.Object({
    scope: text,
    id: text,
    blocks: Type.Array(limit),
    buckets: Type.Array(Type.Object({ bucket: text, limit: count })),
    recent: Type.Object({}),
    operations: Type.Array(Type.Object({ operation: text })),
  }),
);

/** `GET /usage/accounts/{id}?period=2026-11` */
export const isPastUsage = checkOf(
  Type.Object({
    scope: text,
    id: text,
    from: text,
    to: text,
    limits: Type.Array(Type.Object({ limit: text })),
    days: Type.Array(Type.Object({ day: text })),
  }),
);

const ranking = Type.Array(Type.Object({ id: text, points: count, requests: count, refused: count }));
const rankings = Type.Object({ byPoints: ranking, byRequests: ranking, byRefused: ranking });

/** `GET /usage/top` */
export const isTop = checkOf(Type.Object({ window: text, accounts: rankings, organizations: rankings }));

/** `GET /livez` */
export const isAlive = checkOf(Type.Object({ status: Type.Literal('alive') }));
