/** Connections are counted by their state, as a metric. */
export const MIGRATION_4 = `
CREATE INDEX connections_by_state ON connections (state);
`;
