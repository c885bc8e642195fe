/**
 * What is known of tokens that are refused, or cannot be refreshed, and what shows whether that is their own trouble or
 * everybody's: when each connection was refreshed last, and which of them are refused in the same words.
 */
export const MIGRATION_10 = `
-- JSON: since when, and what was said (tokens/trouble.ts).
ALTER TABLE connections ADD COLUMN trouble TEXT;
-- A fingerprint of the words of the last refusal.
ALTER TABLE connections ADD COLUMN refusal TEXT;
ALTER TABLE connections ADD COLUMN refused_at INTEGER;
ALTER TABLE connections ADD COLUMN refreshed_at INTEGER;
CREATE INDEX connections_refused ON connections (provider_name, refusal, refused_at) WHERE refusal IS NOT NULL;
CREATE INDEX connections_refreshed ON connections (application_id, provider_name, refreshed_at)
  WHERE refreshed_at IS NOT NULL;

-- Since when the provider refuses the client itself.
ALTER TABLE oauth_clients ADD COLUMN refused_since INTEGER;
`;
