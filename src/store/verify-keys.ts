import { setImmediate as nextTurn } from "node:timers/promises";
import { type SealBinding, SealError, type SealErrorReason, type Sealer } from "../sealing/seal.js";
import type { KeyCheck, Resealed, SealedRow, SealedRows } from "./sealed-rows.js";
import type { Store } from "./store.js";

/** The key file does not open the store. The message contains only key ids. */
export class KeyMismatchError extends Error {
  constructor(message: string) {
    super(`${message} Check RELAY_KEY_FILE and RELAY_DATABASE. Nothing was changed.`);
    this.name = "KeyMismatchError";
  }
}

/** Rows read at a time when all of them must be checked. */
const BATCH = 500;

/** The part of a store that a check of keys needs. */
export type KeyedStore = Pick<Store, "keyChecks" | "sealedRows">;

/**
 * Checks the key file against the store; every process that seals does this at start. Adds a key check for the current
 * key if the store has none, and deletes those of unused older keys. Rejects with KeyMismatchError as `judgeKeys()` does,
 * before anything is written.
 */
export async function verifyKeys(store: KeyedStore, sealer: Sealer): Promise<void> {
  const { unused, hasCurrent } = await judgeKeys(store, sealer);
  if (!hasCurrent) await store.keyChecks.add(createKeyCheck(sealer));
  for (const keyId of unused) await store.keyChecks.delete(keyId, sealer.currentKeyId);
}

/**
 * Only judges, and writes nothing. Resolves to the ids of keys that are gone from the file and that no value is sealed
 * under, and to whether the store has a check of the current key. Rejects with KeyMismatchError when a check does not
 * open, or the store holds values under a key that the key file does not have.
 */
export async function judgeKeys(
  store: KeyedStore,
  sealer: Sealer,
): Promise<{ readonly unused: readonly string[]; readonly hasCurrent: boolean }> {
  const checks = await store.keyChecks.list();
  const judged = checks.map((check) => ({ keyId: check.keyId, verdict: decideKeyCheck(check, sealer) }));
  const wrong = judged.find(({ verdict }) => verdict === "corrupt");
  if (wrong !== undefined) {
    throw new KeyMismatchError(`Key ${quote(wrong.keyId)} of the key file is not the key this store was sealed with.`);
  }
  const opened = new Set(judged.filter(({ verdict }) => verdict === "opens").map(({ keyId }) => keyId));
  const missing = judged.filter(({ verdict }) => verdict === "unknown_key").map(({ keyId }) => keyId);
  // All rows are read only when a key is gone from the file, or when the store has no checks.
  if (missing.length > 0 || checks.length === 0) {
    const unopened = await keyIdsThatDoNotOpen(store.sealedRows, sealer, opened);
    requireNoneLost(checks.length === 0 ? unopened : unopened.filter((keyId) => missing.includes(keyId)));
  }
  return { unused: missing, hasCurrent: opened.has(sealer.currentKeyId) };
}

/**
 * Checks the keys while the service runs, from the key checks alone: one small row per key. Rejects with
 * KeyMismatchError when a check does not open: another process has begun to seal with a key that this one does not
 * have, or the key file cannot be read to find it.
 */
export async function probeKeys({ keyChecks }: Pick<Store, "keyChecks">, sealer: Sealer): Promise<void> {
  const wrong = (await keyChecks.list()).find((check) => decideKeyCheck(check, sealer) !== "opens");
  if (wrong !== undefined) throw new KeyMismatchError(`Key ${quote(wrong.keyId)} does not open the store.`);
}

function requireNoneLost([keyId]: readonly string[]): void {
  if (keyId === undefined) return;
  throw new KeyMismatchError(
    `The store holds values sealed under key ${quote(keyId)}, which is missing from the key file or has a different value there. Put that line back into the key file.`,
  );
}

/** Ids of keys that values are sealed under, but none of whose values opens. Damaged values count for no key. */
async function keyIdsThatDoNotOpen(
  tables: readonly SealedRows[],
  sealer: Sealer,
  known: ReadonlySet<string>,
): Promise<string[]> {
  const opened = new Set(known);
  const seen = new Set<string>();
  for await (const { binding, value } of sealedValues(tables)) {
    const keyId = ifSealed(() => sealer.keyIdOf(value));
    if (keyId === undefined || opened.has(keyId)) continue;
    (opens(sealer, value, binding) ? opened : seen).add(keyId);
  }
  return [...seen].filter((keyId) => !opened.has(keyId));
}

/** How many sealed values of a table open, and how many are damaged. */
export interface OpenedValues {
  readonly table: string;
  readonly opened: number;
  readonly damaged: number;
}

/** Opens every sealed value of a store, and keeps none. @param onOpened called with the number of values so far. */
export async function openAll(
  { sealedRows }: Pick<Store, "sealedRows">,
  sealer: Sealer,
  onOpened: (values: number) => void = () => {},
): Promise<readonly OpenedValues[]> {
  const counts = new Map(sealedRows.map(({ table }) => [table, { opened: 0, damaged: 0 }]));
  let looked = 0;
  for await (const { binding, value } of sealedValues(sealedRows)) {
    const count = counts.get(binding.table);
    if (count !== undefined) count[opens(sealer, value, binding) ? "opened" : "damaged"] += 1;
    looked += 1;
    onOpened(looked);
  }
  return [...counts].map(([table, count]) => ({ table, ...count }));
}

async function* sealedValues(
  tables: readonly SealedRows[],
): AsyncGenerator<{ binding: SealBinding; value: Uint8Array }> {
  for (const { table, columns, page } of tables) {
    for await (const rows of pagesOf(page, BATCH)) {
      for (const { values, applicationId, userId, providerName } of rows) {
        for (const [at, value] of values.entries()) {
          const column = columns[at] ?? "";
          if (value !== undefined) yield { binding: { table, column, applicationId, userId, providerName }, value };
        }
      }
    }
  }
}

async function* pagesOf(page: SealedRows["page"], limit: number): AsyncGenerator<SealedRow[]> {
  for (let rows = await page("", limit); rows.length > 0; rows = await page(rows.at(-1)?.id ?? "", limit)) yield rows;
}

/** The result of `work`; undefined when it throws SealError. */
function ifSealed<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof SealError) return undefined;
    throw error;
  }
}

function opens(sealer: Sealer, value: Uint8Array, binding: SealBinding): boolean {
  return ifSealed(() => sealer.open(value, binding)) !== undefined;
}

/** A damaged value may name any bytes as its key. */
function quote(keyId: string): string {
  return JSON.stringify(keyId.slice(0, 64));
}

const KNOWN_TEXT = "relay key check";
const BINDING: SealBinding = { table: "key_checks", column: "sealed", applicationId: "", userId: "", providerName: "" };

/** The check of the sealer's current key. */
export function createKeyCheck(sealer: Sealer): KeyCheck {
  return { keyId: sealer.currentKeyId, sealed: sealer.seal(KNOWN_TEXT, BINDING) };
}

/** Whether a check opens: `opens`, or why it does not. */
function decideKeyCheck({ sealed }: KeyCheck, sealer: Sealer): "opens" | SealErrorReason {
  try {
    return sealer.open(sealed, BINDING).toString() === KNOWN_TEXT ? "opens" : "corrupt";
  } catch (error) {
    if (error instanceof SealError) return error.reason;
    throw error;
  }
}

/** The result of `resealAll()`, in rows. */
export interface ResealReport {
  readonly resealed: number;
  /**
   * Rows that still have a value under another key: damaged, sealed under a key that the key file does not have, or
   * changed repeatedly meanwhile. If not 0, run it again, and keep the old keys.
   */
  readonly left: number;
}

/** Rows read and written at a time: a few milliseconds of the write lock and of the event loop. */
const RESEALED_AT_ONCE = 100;
/** Most passes over the store. A pass that finds nothing to do ends the work; a busy store may never get there. */
const MAX_PASSES = 5;

/**
 * Reseals every value of the store under the current key. Safe while a relay runs: rows are replaced by
 * compare-and-swap in short transactions, and a row that has changed meanwhile is tried again. Old keys must stay in
 * the key file until this has succeeded with nothing left.
 *
 * @param onLooked called with the number of rows checked so far.
 */
export async function resealAll(
  store: Pick<Store, "keyChecks" | "sealedRows">,
  sealer: Sealer,
  onLooked: (rows: number) => void = () => {},
): Promise<ResealReport> {
  // First, so that no value is ever sealed under a key that the store has no check for.
  await store.keyChecks.add(createKeyCheck(sealer));
  let resealed = 0;
  let looked = 0;
  const onPage = (rows: number) => {
    looked += rows;
    onLooked(looked);
  };
  for (let passes = 1; ; passes += 1) {
    const pass = await resealOnce(store.sealedRows, sealer, onPage);
    resealed += pass.replaced;
    if (pass.due === 0 || passes === MAX_PASSES) return { resealed, left: pass.due - pass.replaced + pass.unopened };
  }
}

interface Pass {
  /** Rows with a value that can be sealed again. */
  due: number;
  replaced: number;
  /** Rows with a value that does not open. */
  unopened: number;
}

async function resealOnce(
  tables: readonly SealedRows[],
  sealer: Sealer,
  onPage: (rows: number) => void,
): Promise<Pass> {
  const pass: Pass = { due: 0, replaced: 0, unopened: 0 };
  for (const rows of tables) {
    for await (const page of pagesOf(rows.page, RESEALED_AT_ONCE)) {
      const outcomes = page.map((row) => resealRow(rows, row, sealer));
      const due = outcomes.filter(({ row, values }) => values.some((value, at) => value !== row.values[at]));
      pass.due += due.length;
      pass.replaced += due.length > 0 ? await rows.replace(due) : 0;
      pass.unopened += outcomes.filter(({ isUnopened }) => isUnopened).length;
      onPage(page.length);
      await nextTurn();
    }
  }
  return pass;
}

/**
 * Reseals a row's values under the current key. A value that is current already, or does not open, stays the same
 * object.
 */
function resealRow(rows: SealedRows, row: SealedRow, sealer: Sealer): Resealed & { readonly isUnopened: boolean } {
  const { id: _, values: old, ...owner } = row;
  let isUnopened = false;
  const values = old.map((value, at) => {
    if (value === undefined) return undefined;
    const binding = { table: rows.table, column: rows.columns[at] ?? "", ...owner };
    const resealed = ifSealed(() => sealer.reseal(value, binding));
    isUnopened ||= resealed === undefined;
    return resealed ?? value;
  });
  return { row, values, isUnopened };
}
