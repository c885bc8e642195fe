import type { ErrorType } from "../errors.js";

/** The provider's body, mapped for a row. */
export type AnswerData =
  /** One valid JSON value: the provider's own bytes (UTF-8), never parsed and printed again. */
  | { readonly kind: "json"; readonly text: Uint8Array }
  /** Text, decoded by its charset. */
  | { readonly kind: "text"; readonly text: string }
  /** Anything else; sent as base64. */
  | { readonly kind: "binary"; readonly bytes: Uint8Array }
  /** The decoded bytes themselves, for a caller that asked for `body`. */
  | { readonly kind: "body"; readonly bytes: Uint8Array }
  /** An empty body: `{}` in a row. */
  | { readonly kind: "empty" };

/** What the provider answered, ready to leave: decoded, filtered and redacted. */
export interface Answer {
  readonly statusCode: number;
  /** Media type without parameters, lower-case; empty when the provider named none. */
  readonly contentType: string;
  /** Names as received, repeated fields joined with `, `. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  readonly data: AnswerData;
}

/** How one call ended. A row has exactly these members (design: the envelope). */
export type Outcome =
  | { readonly result: "success"; readonly callId: string; readonly answer: Answer }
  | {
      readonly result: "error";
      readonly callId: string;
      readonly errorType: ErrorType;
      readonly statusCode: number;
      /** One sentence for a human: `inernalError` on the wire. */
      readonly message: string;
      /** Only when the provider answered (API_ERROR). */
      readonly answer: Answer | undefined;
    };
