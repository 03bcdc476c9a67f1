/**
 * The lines of a stream, without their ends; what follows the last line end is left out.
 *
 * @throws Error if a line is longer than `mostCharacters`
 */
export async function* linesOf(
  stream: AsyncIterable<string>,
  mostCharacters: number,
): AsyncGenerator<string> {
  let parts: string[] = [];
  let length = 0;
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', start)) {
      parts.push(chunk.slice(start, end));
      yield parts.join('');
      parts = [];
      length = 0;
      start = end + 1;
    }
    parts.push(chunk.slice(start));
    length += chunk.length - start;
    if (length > mostCharacters) throw new Error(`a line of more than ${mostCharacters} characters`);
  }
}
