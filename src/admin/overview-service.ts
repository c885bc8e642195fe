import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type FigurePointSchema,
  FiguresSchema,
  type GetFiguresRequest,
  type OverviewService,
  type PercentilesSchema,
  GetFiguresRequest_Period as Period,
  type SubjectFiguresSchema,
} from "../../gen/relay/admin/v1/overview_pb.js";
import { packageVersion } from "../lib/package-version.js";
import {
  addFigures,
  emptyFigures,
  type FigureFilter,
  type FigurePart,
  type Figures,
  figuresFromText,
  percentileOf,
  SPAN_MS,
} from "../records/figures.js";
import { attentionsOf } from "./attention.js";
import {
  type AdminOptions,
  createPublicKeys,
  durationFromMs,
  invalidArgument,
  namedApplication,
  type PublicKeyOf,
  providerNameFrom,
} from "./standard-methods.js";

/** relay.admin.v1.OverviewService. */
export function createOverviewService(options: AdminOptions): ServiceImpl<typeof OverviewService> {
  const publicKeyOf = createPublicKeys(options.store.applications);
  return {
    async getOverview() {
      const attentions = await attentionsOf(options, publicKeyOf);
      return { attentions: [...attentions], version: packageVersion(), nodeVersion: process.versions.node };
    },
    getFigures: (request) => figuresOf(options, request, publicKeyOf),
  };
}

/** Minutes and hours that are shown. */
const POINTS = { MINUTE: 60, HOUR: 7 * 24 } as const;
/** More is read by nobody. */
const MAX_SUBJECTS = 20;

async function figuresOf(options: AdminOptions, request: GetFiguresRequest, publicKeyOf: PublicKeyOf) {
  const { figures: store } = options.store;
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
  const publicKeys = await Promise.all(applications.map(([id]) => publicKeyOf(id)));
  return {
    total: messageFrom(total),
    points: [...points]
      .sort(([one], [other]) => one - other)
      .map(
        ([at, each]): MessageInitShape<typeof FigurePointSchema> => ({
          ...{ startTime: timestampFromMs(at), figures: messageFrom(each) },
        }),
      ),
    startTime: timestampFromMs(fromAt),
    pointDuration: durationFromMs(pointMs),
    applications: applications.map(
      ([, each], at): MessageInitShape<typeof SubjectFiguresSchema> => ({
        ...{ publicKey: publicKeys[at] ?? "", figures: messageFrom(each) },
      }),
    ),
    providers: (await subjects("PROVIDER")).map(
      ([providerName, each]): MessageInitShape<typeof SubjectFiguresSchema> => ({
        ...{ providerName, figures: messageFrom(each) },
      }),
    ),
  };
}

async function subjectFrom(
  { store, catalog }: AdminOptions,
  { publicKey, providerName }: GetFiguresRequest,
): Promise<Pick<FigureFilter, "kind" | "id">> {
  if (publicKey !== "" && providerName !== "") throw invalidArgument("provider_name", "goes without public_key");
  if (publicKey !== "") return { kind: "APPLICATION", id: (await namedApplication(store.applications, publicKey)).id };
  return providerName === ""
    ? { kind: "ALL", id: "" }
    : { kind: "PROVIDER", id: providerNameFrom(catalog, providerName) };
}

/** Added up, those with most calls first. */
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
    ...{ callCount: BigInt(count), errorCount: BigInt(errors) },
    ...{ total: percentiles("total"), relay: percentiles("relay"), queue: percentiles("queue") },
    ...{ token: percentiles("token"), provider: percentiles("provider") },
  });
}

function percentilesFrom(figures: Figures, part: FigurePart): MessageInitShape<typeof PercentilesSchema> {
  const at = (share: number) => durationFromMs(percentileOf(figures, part, share) ?? 0);
  return figures.count === 0 ? {} : { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}
