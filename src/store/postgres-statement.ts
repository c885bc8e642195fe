/** One statement with named parameters, prepared by each connection at its first use. */
export interface Statement<Parameters, Row> {
  readonly name: string;
  readonly text: string;
  /** Values in the order of the text's `$1`, `$2`, … */
  valuesFrom(parameters: Parameters): unknown[];
  /** What a row looks like; never called. */
  readonly row?: (row: Row) => void;
}

/**
 * Makes a statement from SQL with `:name` parameters.
 *
 * @param name unique in the store; PostgreSQL knows the prepared statement by it.
 */
export function createStatement<Parameters extends object, Row = never>(
  name: string,
  sql: string,
): Statement<Parameters, Row> {
  const names: string[] = [];
  // `::type` is a cast.
  const text = sql.replace(/(?<!:):([a-z_]+)/g, (_, parameter: string) => {
    if (!names.includes(parameter)) names.push(parameter);
    return `$${names.indexOf(parameter) + 1}`;
  });
  return {
    name,
    text,
    valuesFrom: (parameters) => names.map((each) => (parameters as Record<string, unknown>)[each]),
  };
}

/** Milliseconds since the epoch by the database's clock, as SQL: the one that all processes share (threats 3.3). */
export const CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
