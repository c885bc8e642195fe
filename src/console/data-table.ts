import { html, type TemplateResult } from "./lit-html.js";

/** One column of a table. */
export interface Column<Row> {
  readonly label: string;
  readonly cell: (row: Row) => unknown;
  /** Numbers stand right, under each other. */
  readonly isNumeric?: boolean;
  /** Left out where it is narrow. */
  readonly isDetail?: boolean;
}

/**
 * A table that becomes a list of cards where it is narrow. The roles are written out, since a browser forgets them when
 * a table is no longer laid out as one.
 *
 * @param caption for those who do not see it.
 */
export function dataTable<Row>(
  caption: string,
  columns: ReadonlyArray<Column<Row>>,
  rows: readonly Row[],
): TemplateResult {
  return html`<table role="table">
    <caption class="unseen">${caption}</caption>
    <thead role="rowgroup">
      <tr role="row">
        ${columns.map((column) => html`<th role="columnheader" scope="col" class=${kindOf(column)}>${column.label}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${rows.map(
        (row) => html`<tr role="row">
          ${columns.map(
            (column) =>
              html`<td role="cell" data-label=${column.label} class=${kindOf(column)}><div>${column.cell(row)}</div></td>`,
          )}
        </tr>`,
      )}
    </tbody>
  </table>`;
}

function kindOf<Row>({ isNumeric, isDetail }: Column<Row>): string {
  return [isNumeric === true ? "number" : "", isDetail === true ? "detail" : ""].join(" ").trim();
}
