/** Headers and bodies of one call, redacted and bounded. */
export interface CaptureContent {
  /** As it was sent to the provider; as the caller described it when it never was. */
  readonly request: CapturedRequest;
  /** As it was handed to the caller; undefined when the provider did not answer. */
  readonly response: CapturedResponse | undefined;
  /** What the caller was told of a failure. */
  readonly message: string | undefined;
}

/** The request of a captured call. */
export interface CapturedRequest {
  /** Whether it was sent. */
  readonly isSent: boolean;
  readonly method: string;
  readonly url: string;
  readonly headers: HeaderPairs;
  readonly body: CapturedBody | undefined;
}

/** The provider's answer of a captured call. */
export interface CapturedResponse {
  readonly statusCode: number;
  readonly headers: HeaderPairs;
  readonly body: CapturedBody | undefined;
}

/** Names and values in order. */
export type HeaderPairs = ReadonlyArray<readonly [name: string, value: string]>;

/** The beginning of a body. */
export interface CapturedBody {
  /** Of the whole body, as far as it is known. */
  readonly bytes: number;
  /** Undefined when it is no text. */
  readonly text: string | undefined;
  /** Whether there is more than the text shows. */
  readonly isCut: boolean;
}
