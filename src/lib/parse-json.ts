/** Parses JSON; undefined for anything else. The parser's error quotes the text, so it goes no further. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
