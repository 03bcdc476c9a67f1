/** Names one offending parameter or body field of a 422. */
export interface FieldError {
  readonly field: string;
  readonly message: string;
}

/** Further errors are not listed, to keep the response small. */
const MAX_ERRORS = 100;
const MAX_FIELD_LENGTH = 200;

/** The offending parameters and fields of one request, each once. */
export class FieldErrors {
  #errors: Map<string, FieldError> | undefined;

  get isEmpty(): boolean {
    return this.#errors === undefined;
  }

  /** Whether further errors would not be listed. */
  get isFull(): boolean {
    return this.#errors !== undefined && this.#errors.size >= MAX_ERRORS;
  }

  get list(): readonly FieldError[] {
    return [...(this.#errors?.values() ?? [])];
  }

  /** Keeps the first error of each field. */
  add(field: string, message: string): void {
    const cut = field.length > MAX_FIELD_LENGTH ? `${field.slice(0, MAX_FIELD_LENGTH)}...` : field;
    this.#errors ??= new Map();
    if (!this.isFull && !this.#errors.has(cut)) {
      this.#errors.set(cut, { field: cut, message });
    }
  }
}
