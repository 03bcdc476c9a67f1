/**
 * The longest path, in characters as it is sent. Servers commonly accept 4 to 8 KiB (nginx 8,192, Apache 8,190, Tomcat 8,192, gunicorn
 * 4,094), and RFC 9112 section 3 asks for a request line of 8,000.
 */
export const MAX_PATH_LENGTH = 8_192;

/** As in the Stream-Safe Text Format (UAX #15 section 13). Words of living languages have at most a handful. */
export const MAX_MARKS = 30;

/**
 * What normalisation puts in order within a run: marks, and the two letters that NFKC turns into marks. What is ignorable may be removed
 * first, so it does not end a run.
 */
const MARKS = /[\p{M}\p{Default_Ignorable_Code_Point}\uff9e\uff9f]+/gu;

/** Whether a run of marks in a decoded path is so long that putting it in order takes more than linear time. */
export function hasTooManyMarks(decodedPath: string): boolean {
  for (const [run] of decodedPath.matchAll(MARKS)) {
    // A mark outside the basic plane has two units.
    if (run.length > MAX_MARKS && [...run].length > MAX_MARKS) return true;
  }
  return false;
}
