/** Whether a browser at this origin may read answers, as the application's list says. Exact comparison (RFC 6454). */
export function decideCors(origin: string | undefined, allowedOrigins: readonly string[]): boolean {
  return origin !== undefined && allowedOrigins.includes(origin);
}

/** Whether any active application lists this browser origin. Rejects when the list cannot be read. */
export type ListsOrigin = (origin: string) => Promise<boolean>;

/** The same, for a preflight or an answer: false when the store cannot be read. */
export function isListed(listsOrigin: ListsOrigin, origin: string): Promise<boolean> {
  return listsOrigin(origin).catch(() => false);
}

/** Fields of an answer that a browser at `origin` may read. */
export function corsHeaders(origin: string): Record<string, string> {
  return { "access-control-allow-origin": origin, "access-control-allow-credentials": "true" };
}

/** Fields of the answer to a preflight. Any header name can be allowed: the relay judges what it forwards anyway. */
export function preflightHeaders(
  origin: string,
  options: { readonly methods: string; readonly headers: string },
): Record<string, string> {
  return {
    ...corsHeaders(origin),
    "access-control-allow-methods": options.methods,
    "access-control-allow-headers": options.headers,
    "access-control-max-age": "600",
  };
}
