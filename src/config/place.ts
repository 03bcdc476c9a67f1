/** A place in a file. Its line is counted on demand: only who asks for it pays for it. */
export interface Place {
  readonly file: string;
  /** The setting that stands there, as `formatPath` writes it. */
  readonly path: string;
  line(): number | undefined;
}

/** `openapi.yaml:12` */
export function formatPlace(place: Place): string {
  const line = place.line();
  return line === undefined ? place.file : `${place.file}:${line}`;
}
