// A typed Connect client with the generated contract. The page's own server signs the id of its user: server.ts.
import { toJsonString } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { RelayService } from "provider-call-relay-client/relay/v1";

interface Caller {
  readonly relayUrl: string;
  readonly apiUrl: string;
  readonly providerName: string;
  readonly userId: string;
  readonly publicKey: string;
  readonly userSignature: string;
}

async function showProfile(into: HTMLElement): Promise<void> {
  const { relayUrl, apiUrl, ...caller } = (await (await fetch("/caller.json")).json()) as Caller;
  const relay = createClient(RelayService, createConnectTransport({ baseUrl: relayUrl }));
  const { rows } = await relay.call({ ...caller, call: { url: `${apiUrl}/me`, method: "GET" } });
  const [row] = rows;
  into.dataset["outcome"] = row?.errorType || row?.pincStatus || "";
  into.textContent = row?.data === undefined ? (row?.inernalError ?? "") : toJsonString(ValueSchema, row.data);
}

const output = document.querySelector("output");
if (output !== null) {
  showProfile(output).catch((error: unknown) => {
    // A browser does not say more: the page's origin is not on the application's list, or no relay answers there.
    output.dataset["outcome"] = "failed";
    output.textContent = String(error);
  });
}
