/** Since when a refresh token may be spent whose answer is not stored: it outlives the lease that it was sent under. */
export const MIGRATION_9 = `
ALTER TABLE connections ADD COLUMN unanswered_since INTEGER;
`;
