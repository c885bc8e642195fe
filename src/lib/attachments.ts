/** Values that live as long as the objects they belong to. */
export interface Attachments<Owner extends object, Value> {
  get(owner: Owner): Value | undefined;
  /** The first value stays; an owner has none yet. */
  set(owner: Owner, value: Value): void;
}

/**
 * Attaches values to objects that do not know of them, frozen ones, too. Each is a private field of its object, which
 * nothing that prints, copies or compares objects can see.
 *
 * Not a WeakMap: V8's frequent, cheap collections take every value in one for alive, and with it the owner that the value
 * leads to. So whatever calls made, once for each, grew old first, and collecting it then cost more than making it.
 */
export function createAttachments<Owner extends object, Value>(): Attachments<Owner, Value> {
  class Attachment extends Returned {
    readonly #value: Value;

    constructor(owner: Owner, value: Value) {
      super(owner);
      this.#value = value;
    }

    static of(owner: Owner): Value | undefined {
      return #value in owner ? (owner as unknown as Attachment).#value : undefined;
    }
  }
  return { get: Attachment.of, set: (owner, value) => void new Attachment(owner, value) };
}

/** A constructor may return another object than the new one: then that one gets the fields of the derived class. */
class Returned {
  constructor(owner: object) {
    // biome-ignore lint/correctness/noConstructorReturn: it is what this class is for.
    return owner;
  }
}
