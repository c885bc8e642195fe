import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type AttentionSchema,
  FiguresSchema,
  type GetFiguresRequest,
  Attention_Kind as Kind,
  type OverviewService,
  type PercentilesSchema,
  GetFiguresRequest_Period as Period,
} from "../../gen/relay/admin/v1/overview_pb.js";
import { packageVersion } from "../lib/process.js";
import {
  addFigures,
  emptyFigures,
  type FigureFilter,
  type FigurePart,
  type Figures,
  figuresFromText,
  pairId,
  percentileOf,
  SPAN_MS,
} from "../records/figures.js";
import {
  type AdminOptions,
  type DiskRoom,
  durationFromMs,
  namedApplication,
  providerNameFrom,
} from "./standard-methods.js";

/** relay.admin.v1.OverviewService. */
export function createOverviewService(options: AdminOptions): ServiceImpl<typeof OverviewService> {
  return {
    async getOverview() {
      const attentions = await attentionsOf(options);
      return { attentions: [...attentions], version: packageVersion(), nodeVersion: process.versions.node };
    },
    getFigures: (request) => figuresOf(options, request),
  };
}

/** Number of minutes or hours shown. */
const POINTS = { MINUTE: 60, HOUR: 7 * 24 } as const;
/** Applications and providers listed; nobody reads more. */
const MAX_SUBJECTS = 20;

async function figuresOf(options: AdminOptions, request: GetFiguresRequest) {
  const { figures: store, applications: named } = options.store;
  const span = request.period === Period.WEEK ? "HOUR" : "MINUTE";
  const pointMs = SPAN_MS[span];
  const now = options.now();
  const fromAt = now - (now % pointMs) - (POINTS[span] - 1) * pointMs;
  const subject = await subjectFrom(options, request);
  const points = new Map<number, Figures>();
  const total = emptyFigures();
  for await (const row of store.read({ span, fromAt, ...subject })) {
    const figures = figuresFromText(row.figures);
    const point = points.get(row.startAt) ?? emptyFigures();
    addFigures(point, figures);
    points.set(row.startAt, point);
    addFigures(total, figures);
  }
  const isAll = subject.kind === "ALL";
  const subjects = (kind: FigureFilter["kind"]) =>
    isAll ? subjectsOf(store.read({ span, fromAt, kind, id: undefined })) : [];
  const applications = await subjects("APPLICATION");
  const publicKeys = await Promise.all(applications.map(([id]) => named.publicKeyOf(id)));
  return {
    total: messageFrom(total),
    points: [...points]
      .sort(([one], [other]) => one - other)
      .map(([at, each]) => ({ startTime: timestampFromMs(at), figures: messageFrom(each) })),
    startTime: timestampFromMs(fromAt),
    pointDuration: durationFromMs(pointMs),
    applications: applications.map(([, each], at) => ({ publicKey: publicKeys[at] ?? "", figures: messageFrom(each) })),
    providers: (await subjects("PROVIDER")).map(([providerName, each]) => ({
      providerName,
      figures: messageFrom(each),
    })),
  };
}

async function subjectFrom(
  { store, catalog }: AdminOptions,
  { publicKey, providerName }: GetFiguresRequest,
): Promise<Pick<FigureFilter, "kind" | "id">> {
  const provider = providerName === "" ? undefined : providerNameFrom(catalog, providerName);
  if (publicKey === "") return provider === undefined ? { kind: "ALL", id: "" } : { kind: "PROVIDER", id: provider };
  const { id } = await namedApplication(store.applications, publicKey);
  return provider === undefined ? { kind: "APPLICATION", id } : { kind: "PAIR", id: pairId(id, provider) };
}

/** Figures summed by subject, those with the most calls first. */
async function subjectsOf(
  rows: ReturnType<AdminOptions["store"]["figures"]["read"]>,
): Promise<ReadonlyArray<readonly [id: string, figures: Figures]>> {
  const all = new Map<string, Figures>();
  for await (const { id, figures } of rows) {
    const sum = all.get(id) ?? emptyFigures();
    addFigures(sum, figuresFromText(figures));
    all.set(id, sum);
  }
  return [...all].sort(([, one], [, other]) => other.count - one.count).slice(0, MAX_SUBJECTS);
}

function messageFrom(figures: Figures) {
  const { count, errors } = figures;
  const percentiles = (part: FigurePart) => percentilesFrom(figures, part);
  return create(FiguresSchema, {
    callCount: BigInt(count),
    errorCount: BigInt(errors),
    total: percentiles("total"),
    relay: percentiles("relay"),
    queue: percentiles("queue"),
    token: percentiles("token"),
    provider: percentiles("provider"),
  });
}

function percentilesFrom(figures: Figures, part: FigurePart): MessageInitShape<typeof PercentilesSchema> {
  const at = (share: number) => durationFromMs(percentileOf(figures, part, share) ?? 0);
  return figures.count === 0 ? {} : { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

type Attention = MessageInitShape<typeof AttentionSchema>;

/** Webhook events usually wait for some seconds. */
const WAITS_TOO_LONG_MS = 10 * 60_000;
/** A key may seal 2^32 values. A year is well within that, and long enough for the key to be forgotten. */
const KEY_AGE_MS = 365 * 86_400_000;
/** Warn when less than this share, or fewer bytes, are free: SQLite needs space for its log and for a backup. */
const LITTLE_ROOM = 0.1;
const LITTLE_ROOM_BYTES = 2 ** 30;

/** What needs the operator's attention, most urgent first. */
async function attentionsOf(options: AdminOptions): Promise<readonly Attention[]> {
  const { store, sealer, now, problems, diskRoom } = options;
  const found = await store.inspect(sealer.currentKeyId);
  const foundAt = now();
  const named = async (applicationId: string) => (await store.applications.publicKeyOf(applicationId)) ?? "";
  // All at once: what is begun and awaited only later may fail with nobody waiting, which would end the process.
  const [room, clients, events] = await Promise.all([
    diskRoom(),
    Promise.all(
      found.refusedClients.map(async ({ applicationId, providerName, since }) => ({
        kind: Kind.CLIENT_REFUSED,
        publicKey: await named(applicationId),
        providerName,
        sinceTime: timestampFromMs(since),
      })),
    ),
    Promise.all(
      found.waitingEvents
        .filter(({ since }) => since < now() - WAITS_TOO_LONG_MS)
        .map(async ({ applicationId, count, since }) => ({
          kind: Kind.EVENTS_WAITING,
          publicKey: await named(applicationId),
          count,
          sinceTime: timestampFromMs(since),
        })),
    ),
  ]);
  return [
    ...[...problems()].map((message) => ({ kind: Kind.STORE_NOT_WELL, message })),
    ...diskAttention(room),
    ...clockAttention(found.clock, foundAt),
    ...clients,
    ...counted(Kind.REFRESH_FAILING, found.failing),
    ...counted(Kind.REAUTHORIZATION_REQUIRED, found.ended),
    ...events,
    ...counted(Kind.EVENTS_GIVEN_UP, found.givenUpEvents),
    ...keyAttention(found.keyCreatedAt, now()),
    ...nodeAttention(process.versions.node, now()),
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

/** Each process merges figures minutes after a span ends, by its own clock. */
const MAX_CLOCK_DIFFERENCE_MS = 60_000;

function clockAttention(clock: number | undefined, now: number): readonly Attention[] {
  const differenceMs = now - (clock ?? now);
  if (Math.abs(differenceMs) <= MAX_CLOCK_DIFFERENCE_MS) return [];
  const seconds = Math.round(Math.abs(differenceMs) / 1000);
  const side = differenceMs > 0 ? "ahead of" : "behind";
  return [{ kind: Kind.CLOCK_DIFFERS, message: `The relay's clock is ${seconds} s ${side} the database's.` }];
}

/**
 * End of support of each Node.js release line, https://nodejs.org/en/about/previous-releases. No warning for other
 * lines.
 */
const NODE_ENDS: ReadonlyMap<string, string> = new Map([
  ["20", "2026-04-30"],
  ["22", "2027-04-30"],
  ["24", "2028-04-30"],
  ["26", "2029-04-30"],
]);
/** How long before the end of support to warn: time to plan the upgrade. */
const NODE_END_TOLD_MS = 90 * 86_400_000;

/** Warns about the end of support of Node.js. Pure. @param version such as `22.12.0`. */
export function nodeAttention(version: string, now: number): readonly Attention[] {
  const [line = ""] = version.split(".");
  const end = NODE_ENDS.get(line);
  if (end === undefined || now < Date.parse(end) - NODE_END_TOLD_MS) return [];
  const ends = now < Date.parse(end) ? "ends" : "ended";
  return [
    { kind: Kind.NODE_ENDS, message: `Support for Node.js ${line} ${ends} on ${end}. Upgrade to a supported line.` },
  ];
}

function keyAttention(createdAt: number | undefined, now: number): readonly Attention[] {
  if (createdAt === undefined || now - createdAt < KEY_AGE_MS) return [];
  return [{ kind: Kind.KEY_TO_ROTATE, sinceTime: timestampFromMs(createdAt) }];
}
