/** Whether this is `npm run test:long`, which tries all there is (vitest.config.ts). */
export const IS_LONG: boolean = process.env["TEST_LONG"] === "1";

/** All of a matrix in `npm run test:long`; in `npm test` its first entry, and each one that is so far behind the last. */
export function thin<const T>(all: readonly T[], distance = all.length): readonly T[] {
  return IS_LONG ? all : all.filter((_, at) => at % distance === 0);
}
