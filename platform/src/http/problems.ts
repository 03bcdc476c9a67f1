/** One entry of `errors[]`: `field` names the offending parameter or member (contract section 7). */
export interface FieldError {
  readonly field: string;
  readonly message: string;
}

/** A refusal, sent as problem+json. Can be thrown anywhere below a handler. */
export class PlatformError extends Error {
  readonly status: number;
  readonly code: string;
  readonly errors: readonly FieldError[];

  constructor(status: number, code: string, detail: string, errors: readonly FieldError[] = []) {
    super(detail);
    this.name = 'PlatformError';
    this.status = status;
    this.code = code;
    this.errors = errors;
  }
}

/** 422 naming one field. */
export function invalid(field: string, message: string): PlatformError {
  return new PlatformError(422, 'ValidationError', `${field} ${message}`, [{ field, message }]);
}

/** 404 for a resource that does not exist or that the acting Account may not see. Clients cannot distinguish the two. */
export function notFound(what: string, id: string): PlatformError {
  return new PlatformError(404, 'ResourceNotFound', `There is no ${what} "${id}".`);
}

/** 403 for a resource that the caller may read but only its owner may change. */
export function forbidden(detail: string): PlatformError {
  return new PlatformError(403, 'Forbidden', detail);
}

/** The body of contract section 7. `errors` is present only if fields are invalid. */
export function problemBody(
  error: PlatformError,
  baseUrl: string,
  requestId: string,
): Record<string, unknown> {
  const title = error.code.replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ');
  return {
    type: `${baseUrl.replace(/(?<!\/)\/+$/, '')}/errors/${title.replaceAll(' ', '-').toLowerCase()}`,
    title,
    status: error.status,
    detail: error.message,
    code: error.code,
    requestId,
    extensions: {},
    ...(error.errors.length > 0 && { errors: error.errors }),
  };
}
