/**
 * Protobuf of a kind that needs no library: tags and lengths of few bytes, strings in ASCII. The first byte that is
 * anything else ends it for good, so that whoever reads checks once, at the end.
 *
 * https://protobuf.dev/programming-guides/encoding/
 */
export class PlainInput {
  /** Whether everything so far was of that kind. */
  isPlain = true;
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Whether something is left before `end`. */
  hasMore(end: number): boolean {
    return this.isPlain && this.#at < end;
  }

  /** The next byte: a tag, or a number below 128. */
  byte(end: number): number {
    if (this.#at >= end) return this.giveUp();
    const byte = this.#bytes[this.#at++] as number;
    return byte < 0x80 ? byte : this.giveUp();
  }

  /** A length below 16,384, and then where what it measures ends. */
  stop(end: number): number {
    const bytes = this.#bytes;
    let length = bytes[this.#at++] ?? 0;
    if (length >= 0x80) {
      const high = bytes[this.#at++] ?? 0x80;
      length = high < 0x80 ? (high << 7) | (length & 0x7f) : end;
    }
    const stop = this.#at + length;
    return stop <= end ? stop : this.giveUp();
  }

  /** A copy: a part of a longer text would hold on to all of it. */
  string(end: number): string {
    const stop = this.stop(end);
    const start = this.#at;
    for (; this.#at < stop; this.#at++) if ((this.#bytes[this.#at] as number) >= 0x80) this.giveUp();
    return this.isPlain ? this.#bytes.toString("latin1", start, stop) : "";
  }

  /** The bytes themselves. */
  bytes(end: number): Uint8Array<ArrayBuffer> {
    const stop = this.stop(end);
    const start = this.#at;
    this.#at = stop;
    return this.#bytes.subarray(start, stop) as Uint8Array<ArrayBuffer>;
  }

  /** From here on it is not plain. */
  giveUp(): 0 {
    this.isPlain = false;
    this.#at = this.#bytes.length;
    return 0;
  }
}
