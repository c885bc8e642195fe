import type { Guard } from "./guard.js";
import { ADMIN_GUARDS } from "./guards-admin.js";
import { CONNECT_GUARDS } from "./guards-connect.js";
import { CONSOLE_GUARDS } from "./guards-console.js";
import { FAST_PATH_GUARDS } from "./guards-fast-path.js";
import { LARGE_GUARDS } from "./guards-large.js";
import { MCP_GUARDS } from "./guards-mcp.js";
import { OPERATOR_GUARDS } from "./guards-operator.js";
import { PAGE_GUARDS } from "./guards-pages.js";
import { POSTGRES_GUARDS } from "./guards-postgres.js";
import { PROVIDER_GUARDS } from "./guards-provider.js";
import { RECORD_GUARDS } from "./guards-records.js";
import { REQUEST_GUARDS } from "./guards-request.js";
import { SECRET_GUARDS } from "./guards-secrets.js";
import { STREAM_GUARDS } from "./guards-stream.js";
import { TELEMETRY_GUARDS } from "./guards-telemetry.js";
import { TOKEN_GUARDS } from "./guards-tokens.js";
import { VIA_GUARDS } from "./guards-via.js";
import { WEBHOOK_GUARDS } from "./guards-webhooks.js";

/** Every guard that must not be lost without a test that says so. */
export const GUARDS: readonly Guard[] = [
  ...REQUEST_GUARDS,
  ...PROVIDER_GUARDS,
  ...SECRET_GUARDS,
  ...CONNECT_GUARDS,
  ...CONSOLE_GUARDS,
  ...PAGE_GUARDS,
  ...WEBHOOK_GUARDS,
  ...STREAM_GUARDS,
  ...VIA_GUARDS,
  ...MCP_GUARDS,
  ...RECORD_GUARDS,
  ...FAST_PATH_GUARDS,
  ...LARGE_GUARDS,
  ...TELEMETRY_GUARDS,
  ...POSTGRES_GUARDS,
  ...OPERATOR_GUARDS,
  ...ADMIN_GUARDS,
  ...TOKEN_GUARDS,
];
