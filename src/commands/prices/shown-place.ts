import { relative } from 'node:path';
import { formatPlace, type Place } from '../../config/place.ts';

/** A place as a person at this prompt would write it: from the working folder where it lies below. */
export function shownPlace(place: Place): string {
  const fromHere = relative(process.cwd(), place.file);
  const file = fromHere.startsWith('..') ? place.file : fromHere;
  return formatPlace({ ...place, file });
}
