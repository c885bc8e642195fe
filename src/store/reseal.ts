import { setImmediate as nextTurn } from "node:timers/promises";
import { type SealBinding, SealError, type Sealer } from "../sealing/seal.js";
import type { Resealed, SealedRow, SealedRows } from "./sealed-rows.js";
import type { Store } from "./store.js";
import { createKeyCheck } from "./verify-keys.js";

/** What `resealAll()` did, in rows. */
export interface ResealReport {
  readonly resealed: number;
  /**
   * Rows that still have a value under another key: damaged, sealed under a key that the key file does not have, or
   * changed again and again meanwhile. Not 0: run it again, and keep the old keys.
   */
  readonly left: number;
}

/** Rows read and written at a time: some milliseconds of the write lock and of the event loop. */
const BATCH = 100;
/** A pass that finds nothing to do ends the work; this many end it on a store that never rests. */
const MAX_PASSES = 5;

/**
 * Seals every value of the store again under the current key. Safe beside a running relay: rows are replaced by
 * compare-and-swap in short transactions, and a row that was changed meanwhile is looked at again. Old keys must stay
 * in the key file until this has succeeded with nothing left.
 */
export async function resealAll(store: Pick<Store, "keyChecks" | "sealedRows">, sealer: Sealer): Promise<ResealReport> {
  // First of all, so that no value is ever sealed under a key the store cannot check.
  await store.keyChecks.add(createKeyCheck(sealer));
  let resealed = 0;
  for (let passes = 1; ; passes += 1) {
    const pass = await resealOnce(store.sealedRows, sealer);
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

async function resealOnce(tables: readonly SealedRows[], sealer: Sealer): Promise<Pass> {
  const pass: Pass = { due: 0, replaced: 0, unopened: 0 };
  for (const rows of tables) {
    for (let page = await rows.page("", BATCH); page.length > 0; page = await rows.page(page.at(-1)?.id ?? "", BATCH)) {
      const outcomes = page.map((row) => resealRow(rows, row, sealer));
      const due = outcomes.filter(({ row, values }) => values.some((value, at) => value !== row.values[at]));
      pass.due += due.length;
      pass.replaced += due.length > 0 ? await rows.replace(due) : 0;
      pass.unopened += outcomes.filter(({ isUnopened }) => isUnopened).length;
      await nextTurn();
    }
  }
  return pass;
}

/** The row's values under the current key; a value that is so already, or does not open, is the same object. */
function resealRow(rows: SealedRows, row: SealedRow, sealer: Sealer): Resealed & { readonly isUnopened: boolean } {
  const { id: _, values: old, ...owner } = row;
  let isUnopened = false;
  const values = old.map((value, at) => {
    if (value === null) return null;
    const resealed = resealValue(value, { table: rows.table, column: rows.columns[at] ?? "", ...owner }, sealer);
    isUnopened ||= resealed === undefined;
    return resealed ?? value;
  });
  return { row, values, isUnopened };
}

function resealValue(value: Uint8Array, binding: SealBinding, sealer: Sealer): Uint8Array | undefined {
  try {
    return sealer.reseal(value, binding);
  } catch (error) {
    if (error instanceof SealError) return undefined;
    throw error;
  }
}
