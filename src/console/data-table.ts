import { html, type TemplateResult } from "./lit-html.js";

/** One column of a table. */
export interface Column<Row> {
  readonly label: string;
  readonly cell: (row: Row) => unknown;
  /** Numbers stand right, under each other. */
  readonly isNumeric?: boolean;
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
        ${columns.map(({ label, isNumeric }) => html`<th role="columnheader" scope="col" class=${kind(isNumeric)}>${label}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${rows.map(
        (row) => html`<tr role="row">
          ${columns.map(
            ({ label, cell, isNumeric }) =>
              html`<td role="cell" data-label=${label} class=${kind(isNumeric)}><div>${cell(row)}</div></td>`,
          )}
        </tr>`,
      )}
    </tbody>
  </table>`;
}

function kind(isNumeric: boolean | undefined): string {
  return isNumeric === true ? "number" : "";
}
