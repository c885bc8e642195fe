/** Connections are counted by their state, as a metric. */
export const POSTGRES_MIGRATION_2 = `
CREATE INDEX connections_by_state ON connections (state);
`;
