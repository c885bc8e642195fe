/** For counting the connections whose refresh is failing: hardly any entry on most days. */
export const MIGRATION_11 = `
CREATE INDEX connections_failing ON connections (state) WHERE fail_count > 0;
`;
