/** Content of the sizes a benchmark asks for, built once and then only handed out. */
export interface PreparedContent {
  /** `size` bytes that are the same in every run; a prefix of every greater size. */
  bytes(size: number): Buffer;
  /** One valid JSON object of exactly `size` bytes, at least 2. */
  json(size: number): Buffer;
}

/** Together the prepared JSON objects stay below this; the oldest goes first. */
const MAX_PREPARED_JSON_BYTES = 64 * 1024 * 1024;

/** Creates the cache of prepared content. */
export function createPreparedContent(): PreparedContent {
  let longest: Buffer = Buffer.alloc(0);
  const jsonBySize = new Map<number, Buffer>();
  return {
    bytes(size) {
      if (size > longest.length) longest = deterministicBytes(size);
      return longest.subarray(0, size);
    },
    json(size) {
      const prepared = jsonBySize.get(size) ?? jsonOfSize(size);
      if (!jsonBySize.has(size)) keep(jsonBySize, size, prepared);
      return prepared;
    },
  };
}

function keep(jsonBySize: Map<number, Buffer>, size: number, prepared: Buffer): void {
  let total = size;
  for (const other of jsonBySize.keys()) total += other;
  for (const oldest of jsonBySize.keys()) {
    if (total <= MAX_PREPARED_JSON_BYTES) break;
    jsonBySize.delete(oldest);
    total -= oldest;
  }
  jsonBySize.set(size, prepared);
}

/** Every byte value in an order that does not repeat: xorshift32, https://www.jstatsoft.org/article/view/v008i14 */
function deterministicBytes(size: number): Buffer {
  const bytes = Buffer.allocUnsafe(size);
  let state = 0x9e3779b9;
  for (let i = 0; i < size; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[i] = state;
  }
  return bytes;
}

/** A list as APIs answer it, filled up by a string; below the size of an empty list, an object of blanks. */
function jsonOfSize(size: number): Buffer {
  const head = '{"object":"list","data":[';
  const tail = '],"padding":"';
  const end = '"}';
  const room = size - head.length - tail.length - end.length;
  if (room < 0) return Buffer.from(`{${" ".repeat(size - 2)}}`);
  const data = itemsUpTo(room);
  return Buffer.concat([
    Buffer.from(head),
    data,
    Buffer.from(tail),
    Buffer.alloc(room - data.length, "x"),
    Buffer.from(end),
  ]);
}

function itemsUpTo(maxBytes: number): Buffer {
  const items: string[] = [];
  let bytes = -1;
  for (let id = 1; ; id++) {
    const item = JSON.stringify({
      id,
      name: `Item ${id}`,
      owner: "Zoë",
      url: `/items/${id}?a=1&b=2`,
      open: id % 2 === 0,
      note: null,
    });
    bytes += Buffer.byteLength(item) + 1;
    if (bytes > maxBytes) return Buffer.from(items.join(","));
    items.push(item);
  }
}
