/**
 * Connections that end with their access token, by when they do. No index holds a sealed value; this one only asks
 * whether there is one.
 */
export const MIGRATION_7 = `
CREATE INDEX connections_unrenewable ON connections (expires_at)
  WHERE state = 'ACTIVE' AND refresh_token IS NULL AND expires_at IS NOT NULL;
`;
