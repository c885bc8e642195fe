/** Keys as the headers and the query of a call carry them. */
export interface CallerKeys {
  readonly publicKey: string;
  readonly privateKey: string | undefined;
}

/**
 * Finds the keys of the caller. `x-partner-key: public.private` carries both; `Authorization: Bearer` and the
 * query carry the private key alone. What the query or message names wins, so that nothing is read from two places.
 */
export function callerKeysFrom(
  headers: { readonly authorization?: string | undefined; readonly partnerKey?: string | undefined },
  named: { readonly publicKey: string; readonly privateKey: string | undefined },
): CallerKeys {
  const partner = parsePartnerKey(headers.partnerKey);
  return {
    publicKey: named.publicKey || partner?.publicKey || "",
    privateKey: named.privateKey || bearerFrom(headers.authorization) || partner?.privateKey || undefined,
  };
}

/** RFC 6750 section 2.1; the scheme's case does not matter (RFC 9110 section 11.1). */
function bearerFrom(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : /^Bearer +([\x21-\x7e]+)$/i.exec(authorization)?.[1];
}

/** The last dot parts the keys: a private key has none, a public key an operator chose may. */
function parsePartnerKey(value: string | undefined): { publicKey: string; privateKey: string } | undefined {
  const dot = value?.lastIndexOf(".") ?? -1;
  return value === undefined || dot === -1
    ? undefined
    : { publicKey: value.slice(0, dot), privateKey: value.slice(dot + 1) };
}
