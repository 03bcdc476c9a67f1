/** Names one offending parameter or body field of a 422. */
export interface FieldError {
  readonly field: string;
  readonly message: string;
}

/** More are not listed: nobody fixes a hundred at once, and the response must stay small. */
const MAX_ERRORS = 100;
const MAX_FIELD_LENGTH = 200;

/** The offending parameters and fields of one request, each once. */
export class FieldErrors {
  #errors: Map<string, FieldError> | undefined;

  get isEmpty(): boolean {
    return this.#errors === undefined;
  }

  get list(): readonly FieldError[] {
    return [...(this.#errors?.values() ?? [])];
  }

  /** Of several errors of one field the first counts. */
  add(field: string, message: string): void {
    const cut = field.length > MAX_FIELD_LENGTH ? `${field.slice(0, MAX_FIELD_LENGTH)}...` : field;
    this.#errors ??= new Map();
    if (this.#errors.size < MAX_ERRORS && !this.#errors.has(cut)) {
      this.#errors.set(cut, { field: cut, message });
    }
  }
}
