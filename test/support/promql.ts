import { parser } from "@prometheus-io/lezer-promql";

/** What a query asks for. */
export interface QueryNames {
  readonly metrics: ReadonlyArray<{ readonly name: string; readonly matchers: readonly Matcher[] }>;
  /** Labels of `by (…)`. */
  readonly groupings: readonly string[];
}

/** One condition on a label. */
export interface Matcher {
  readonly label: string;
  readonly operator: string;
  /** As it is written, without its quotation marks. */
  readonly value: string;
}

type Tree = ReturnType<typeof parser.parse>["topNode"];

/** Reads a PromQL query with the parser that Prometheus' own editor uses. Throws when it is not well formed. */
export function namesOf(query: string): QueryNames {
  const textOf = (node: Pick<Tree, "from" | "to">) => query.slice(node.from, node.to);
  const metrics: Array<{ name: string; matchers: Matcher[] }> = [];
  const groupings: string[] = [];
  parser.parse(query).iterate({
    enter({ node, type }) {
      if (type.isError) throw new Error(`not PromQL at ${node.from}: ${query}`);
      if (type.name === "VectorSelector")
        metrics.push({ name: textOf(node.getChild("Identifier") as Tree), matchers: [] });
      if (type.name === "GroupingLabels") groupings.push(...node.getChildren("LabelName").map(textOf));
      if (type.name !== "UnquotedLabelMatcher") return;
      const [label = "", operator = "", value = ""] = ["LabelName", "MatchOp", "StringLiteral"].map((child) =>
        textOf(node.getChild(child) as Tree),
      );
      metrics.at(-1)?.matchers.push({ label, operator, value: value.slice(1, -1) });
    },
  });
  return { metrics, groupings };
}
