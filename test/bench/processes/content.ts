/** What the provider answers, and what a subject that builds its own requests has to know. */
export type ContentKind = "json" | "binary";

/** The provider's token endpoint. */
export const TOKEN_PATH = "/token";

/** Milliseconds from the relay to the provider that is far away. */
export const ONE_WAY_MS = 10;

/** The path of content of a kind and size. */
export function pathOf(kind: ContentKind, bytes: number): string {
  return `/${kind}/${bytes}`;
}

/** A JSON document as APIs answer it, lists of small objects, of exactly so many bytes. */
export function jsonOf(bytes: number): Buffer {
  const items: string[] = [];
  const tail = (pad: number) => `],"pad":"${"x".repeat(pad)}"}`;
  let length = '{"items":['.length + tail(0).length;
  for (let at = 0; ; at++) {
    const item = itemOf(at);
    if (length + item.length + 1 > bytes) break;
    length += item.length + (at === 0 ? 0 : 1);
    items.push(item);
  }
  return Buffer.from(`{"items":[${items.join(",")}${tail(bytes - length)}`);
}

function itemOf(at: number): string {
  return JSON.stringify({
    id: 1_000_000 + at,
    name: `Issue number ${at}`,
    url: `https://api.example.com/v1/issues/${at}`,
    labels: ["bug", "help wanted"],
    author: { login: `user${at % 97}`, admin: at % 7 === 0, score: at / 8 },
    closedAt: null,
  });
}

/** Bytes of every value. */
export function binaryOf(bytes: number): Buffer {
  return Buffer.from(Uint8Array.from({ length: bytes }, (_, at) => (at * 167) & 0xff));
}
