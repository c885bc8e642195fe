/** Every value of the field `name` (lower-case) in a flat list of field lines, in the order received. */
export function fieldValues(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i] ?? "";
    if (candidate.length === name.length && candidate.toLowerCase() === name) values.push(rawHeaders[i + 1] ?? "");
  }
  return values;
}

/** The media type of a message without parameters, lower-case; empty when none is named (RFC 9110 section 8.3.1). */
export function mediaType(rawHeaders: readonly string[]): string {
  const [value = ""] = fieldValues(rawHeaders, "content-type");
  return (value.split(";", 1)[0] ?? "").trim().toLowerCase();
}

/** Whether a media type is JSON: `application/json`, `text/json` or a `+json` suffix (RFC 6839 section 3.1). */
export function isJsonType(type: string): boolean {
  return type === "application/json" || type === "text/json" || type.endsWith("+json");
}
