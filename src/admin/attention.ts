import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type AttentionSchema, Attention_Kind as Kind } from "../../gen/relay/admin/v1/overview_pb.js";
import type { AdminOptions, DiskRoom, PublicKeyOf } from "./standard-methods.js";

type Attention = MessageInitShape<typeof AttentionSchema>;

/** Events wait for some seconds as a rule. */
const WAITS_TOO_LONG_MS = 10 * 60_000;
/** A key is good for 2^32 values; a year is short of that, and long enough to be forgotten. */
const KEY_AGE_MS = 365 * 86_400_000;
/** SQLite needs room for its log and for a backup. */
const LITTLE_ROOM = 0.1;
const LITTLE_ROOM_BYTES = 2 ** 30;

/** What needs attention, the most urgent first. */
export async function attentionsOf(options: AdminOptions, publicKeyOf: PublicKeyOf): Promise<readonly Attention[]> {
  const { store, sealer, now, problems, diskRoom } = options;
  const found = await store.inspect(sealer.currentKeyId);
  const named = async (applicationId: string) => (await publicKeyOf(applicationId)) ?? "";
  const clients = found.refusedClients.map(async ({ applicationId, providerName, since }) => ({
    ...{ kind: Kind.CLIENT_REFUSED, publicKey: await named(applicationId), providerName },
    sinceTime: timestampFromMs(since),
  }));
  const events = found.waitingEvents
    .filter(({ since }) => since < now() - WAITS_TOO_LONG_MS)
    .map(async ({ applicationId, count, since }) => ({
      ...{ kind: Kind.EVENTS_WAITING, publicKey: await named(applicationId), count },
      sinceTime: timestampFromMs(since),
    }));
  return [
    ...[...problems()].map((message) => ({ kind: Kind.STORE_NOT_WELL, message })),
    ...diskAttention(await diskRoom()),
    ...(await Promise.all(clients)),
    ...counted(Kind.REFRESH_FAILING, found.failing),
    ...counted(Kind.REAUTHORIZATION_REQUIRED, found.ended),
    ...(await Promise.all(events)),
    ...counted(Kind.EVENTS_GIVEN_UP, found.givenUpEvents),
    ...keyAttention(found.keyCreatedAt, now()),
  ];
}

function counted(kind: Kind, count: number): readonly Attention[] {
  return count === 0 ? [] : [{ kind, count }];
}

function diskAttention(room: DiskRoom | undefined): readonly Attention[] {
  if (room === undefined) return [];
  const { freeBytes, totalBytes } = room;
  if (freeBytes > LITTLE_ROOM_BYTES && freeBytes > LITTLE_ROOM * totalBytes) return [];
  const message = `${Math.floor(freeBytes / 2 ** 20)} of ${Math.floor(totalBytes / 2 ** 20)} MiB are free.`;
  return [{ kind: Kind.DISK_NEARLY_FULL, message }];
}

function keyAttention(createdAt: number | undefined, now: number): readonly Attention[] {
  if (createdAt === undefined || now - createdAt < KEY_AGE_MS) return [];
  return [{ kind: Kind.KEY_TO_ROTATE, sinceTime: timestampFromMs(createdAt) }];
}
