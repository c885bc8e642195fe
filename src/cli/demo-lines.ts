import { jsonBodyFrom, messageJsonFrom } from "./call-row.js";
import { restUrl, rpcUrl } from "./call-rpc.js";
import type { DemoRelay } from "./demo-relay.js";

/** Command lines to paste into another terminal, in the folder of the checkout. */
export function demoLines(relay: DemoRelay): string {
  const { relayUrl, adminUrl, adminToken, sandboxOrigin, providerName, publicKey, userId } = relay;
  const url = `${sandboxOrigin}/me`;
  const request = { providerName, publicKey, userId, url, method: "GET", payload: undefined, headers: {} };
  const target = { relayUrl, privateKey: undefined, responseMode: "data" } as const;
  const message = `-d ${quoted(messageJsonFrom(request))} ${rpcUrl(relayUrl)}`;
  return `
--- Your turn. Ctrl-C ends the demo. ---

Watch the calls in the console, in a browser:
  ${adminUrl}/
It asks for an admin token. That of this demo is
  ${adminToken}

Paste the rest into another terminal, in this folder.

JSON route:
  curl ${quoted(restUrl(request, target))} -d ${quoted(jsonBodyFrom(request))}

The relay's own client:
  npx relay call ${providerName} --app ${publicKey} --user ${userId} --relay ${relayUrl} ${url}

Typed, with the schema of this folder:
  npx buf curl --schema proto --protocol grpc --http2-prior-knowledge ${message}
  npx buf curl --schema proto --protocol grpcweb ${message}
  npx buf curl --schema proto --protocol connect ${message}

Typed, by server reflection:
  npx buf curl --protocol grpc --http2-prior-knowledge ${message}
  npx buf curl --protocol grpcweb --http2-prior-knowledge ${message}
  npx buf curl --protocol connect --http2-prior-knowledge ${message}

Connect an account of another user, in a browser:
  ${relayUrl}/oauth/connect?public_key=${publicKey}&user_id=grace

Administer, with the same token:
  export ADMIN_TOKEN=${adminToken}
  curl ${adminUrl}/relay.admin.v1.ApplicationService/ListApplications -H "authorization: Bearer $ADMIN_TOKEN" -H 'content-type: application/json' -d '{}'
`;
}

/** For a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
