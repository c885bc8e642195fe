import type { Interceptor } from "@connectrpc/connect";

/** Transport options that send an admin token; none without one. */
export function bearer(token: string | undefined): { readonly interceptors: Interceptor[] } {
  return {
    interceptors: [
      (next) => (request) => {
        if (token !== undefined) request.header.set("authorization", `Bearer ${token}`);
        return next(request);
      },
    ],
  };
}
