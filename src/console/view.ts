import type { Api } from "./api.js";
import type { TemplateResult } from "./lit-html.js";
import type { Session } from "./session.js";

/** One page of the console, shown under an address of its own. */
export interface View {
  readonly title: string;
  /** Shown from now on. @param parameters what stands behind `?` in the address. */
  enter(parameters: URLSearchParams): void;
  /** Not shown any more. */
  leave(): void;
  render(): TemplateResult;
}

/** What views work with. */
export interface ViewContext {
  readonly api: Api;
  readonly session: Session;
  /** Something has changed: everything that is shown is rendered again. */
  readonly update: () => void;
}
