/** Which protocol a call came in by; a label for logs. */
export type Surface = "rest" | "connect" | "grpc" | "grpc-web";

/** How the provider's body comes back: mapped to `data`, or the exact bytes. */
export type ResponseMode = "data" | "body";

/** What a caller shows to prove who it is; everything is untrusted text. */
export interface CallerProof {
  /** The application's private key, from whichever place the caller put it. */
  readonly privateKey: string | undefined;
  /** Lower-case hex HMAC-SHA256(private key, user id). */
  readonly userSignature: string | undefined;
  /** The `Origin` header of a browser. */
  readonly origin: string | undefined;
  /** The client's IP address, after trusted proxies were taken into account. */
  readonly address: string;
}

/** The HTTP request a caller describes: well formed, not yet judged. */
export interface CallDescription {
  readonly url: string;
  readonly method: string;
  /** UTF-8 JSON text of a non-empty object, exactly as the caller wrote it; undefined for missing, null and `{}`. */
  readonly payload: Uint8Array | undefined;
  /** In the order written; names as written. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  /** UTF-8 JSON text of a non-empty object; undefined for missing, null and `{}`. */
  readonly queryString: Uint8Array | undefined;
  /** Exact bytes to send instead of a payload. */
  readonly body: Uint8Array | undefined;
}

/** One call as every protocol hands it to `relay()`. */
export interface Call {
  readonly callId: string;
  readonly surface: Surface;
  readonly providerName: string;
  readonly publicKey: string;
  readonly userId: string;
  readonly proof: CallerProof;
  readonly description: CallDescription;
  readonly responseMode: ResponseMode;
  /** Aborts when the caller is gone. */
  readonly signal: AbortSignal | undefined;
  /** When the call must have ended, in milliseconds of `performance.now()`. */
  readonly deadline: number;
}
