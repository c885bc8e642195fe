/** The part of lit-html that the console uses; the relay serves the library's own file under this name. */
export { html, nothing, render, svg, type TemplateResult } from "lit-html";
