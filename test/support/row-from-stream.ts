import type { Streamed } from "./stream-callers.js";

/**
 * What the row of a call would say of a streamed answer, in the encoding of the row that is expected, so that both can be
 * held to the same table. Field names are written as providers of the table write them; HTTP/2 has them in lower case.
 */
export function rowFromStream(
  { head, body }: Streamed,
  expected: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const headers = Object.fromEntries(Object.entries(head?.headers ?? {}).map(providersField));
  const type = headers["Content-Type"] ?? "";
  const contentType = type.split(";")[0];
  const answer = { statusCode: head?.statusCode, contentType, headers };
  if ("body" in expected) return { ...answer, body: body.toString("base64") };
  if ("dataEncoding" in expected) return { ...answer, dataEncoding: "base64", data: body.toString("base64") };
  return { ...answer, data: dataFrom(body, type) };
}

/** The raw route keeps fields that would act on its own origin under names of their own. */
function providersField([name, value]: [string, unknown]): [string, string] {
  const own = name.toLowerCase().replace(/^x-provider-/, "");
  const text = Array.isArray(value) ? value.join(", ") : String(value);
  return [own.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase()), text];
}

/** As a row has it: JSON, or text by its charset; nothing is `{}`. */
function dataFrom(body: Buffer, type: string): unknown {
  if (body.length === 0) return {};
  const text = new TextDecoder(/charset=([^;]+)/.exec(type)?.[1] ?? "utf-8").decode(body);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
