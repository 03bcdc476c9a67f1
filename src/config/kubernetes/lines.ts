/**
 * The lines of a stream, without line terminators. Text after the last terminator is dropped.
 *
 * @throws Error if a line is longer than `maxCharacters`
 */
export async function* linesOf(stream: AsyncIterable<string>, maxCharacters: number): AsyncGenerator<string> {
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
    if (length > maxCharacters) throw new Error(`a line of more than ${maxCharacters} characters`);
  }
}
