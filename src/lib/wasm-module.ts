/** What is used of it: the types of Node.js do not have it. */
const { Module, Instance } = (globalThis as unknown as { readonly WebAssembly: WebAssemblyApi }).WebAssembly;

interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
}

/** A WebAssembly module that imports nothing. */
export interface WasmModule<Exports> {
  /** A new one, with a memory of its own. */
  createInstance(): Exports;
}

/**
 * Compiles a module; slow, so once for each.
 *
 * @typeParam Exports what the module is known to export.
 */
export function createWasmModule<Exports>(base64: string): WasmModule<Exports> {
  const module = new Module(Buffer.from(base64, "base64"));
  return { createInstance: () => new Instance(module).exports as Exports };
}
