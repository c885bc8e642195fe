/** What a call to try may begin with. */
export interface TryStart {
  readonly publicKey?: string;
  readonly userId?: string;
  readonly providerName?: string;
}

/** Address of the view to try a call in, with its form filled so far. Pure. */
export function tryAddress(start: TryStart): string {
  return `#/try?${new URLSearchParams({ ...start })}`;
}
