/** Typed here, since the types of Node.js lack WebAssembly. */
const { Module, Instance } = (globalThis as unknown as { readonly WebAssembly: WebAssemblyApi }).WebAssembly;

interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
}

/** A WebAssembly module that imports nothing. */
export interface WasmModule<Exports> {
  /** Creates an instance with its own memory. */
  createInstance(): Exports;
}

/**
 * Compiles a module. This is slow, so do it once per module.
 *
 * @typeParam Exports what the module exports.
 */
export function createWasmModule<Exports>(base64: string): WasmModule<Exports> {
  const module = new Module(Buffer.from(base64, "base64"));
  return { createInstance: () => new Instance(module).exports as Exports };
}
