/** Address of the view of one call's record. Pure. */
export function callAddress(callId: string): string {
  return `#/call?${new URLSearchParams({ callId })}`;
}
