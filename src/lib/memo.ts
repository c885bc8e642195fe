/** Values made from objects, each kept for as long as its object is alive. */
export interface Memo<Owner extends object, Value> {
  get(owner: Owner): Value | undefined;
  set(owner: Owner, value: Value): void;
}

/**
 * Creates a memo: like a WeakMap, but each value is a hidden property of its object. Minor collections of V8 do not free
 * a value in a WeakMap together with its object, and one that refers to its object only a full collection frees: with
 * another user in each call, minor collections took 12 ms instead of 3.
 */
export function createMemo<Owner extends object, Value>(): Memo<Owner, Value> {
  const key = Symbol("memo");
  type Noted = Owner & { readonly [key]?: Value };
  return {
    get: (owner) => (owner as Noted)[key],
    // Not enumerable: a copy of the object is another object.
    set: (owner, value) =>
      void Object.defineProperty(owner, key, { value, writable: true, configurable: true, enumerable: false }),
  };
}
