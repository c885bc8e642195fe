/** One line of Prometheus' text format. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;

/**
 * Reads the text format, strictly: each metric has a help and a type before its samples, names and labels are well formed,
 * and no sample stands twice.
 *
 * @see https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
 */
export function parseExposition(text: string): Sample[] {
  if (!text.endsWith("\n")) throw new Error("the last line has no end");
  const types = new Map<string, string>();
  const seen = new Set<string>();
  const samples: Sample[] = [];
  for (const line of text.split("\n").filter(Boolean)) {
    const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line);
    if (type !== null) types.set(type[1] as string, type[2] as string);
    else if (!/^# HELP \S+ \S/.test(line)) samples.push(parseSample(line, types, seen));
  }
  return samples;
}

/** The value of the one sample with these labels, and maybe others; a sum when there are several. */
export function totalOf(
  samples: readonly Sample[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  const matching = samples.filter(
    (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  );
  return matching.reduce((sum, { value }) => sum + value, 0);
}

function parseSample(line: string, types: ReadonlyMap<string, string>, seen: Set<string>): Sample {
  const [, name = "", labelText = "", value = ""] = LINE.exec(line) ?? [];
  const base = name.replace(/_(bucket|sum|count)$/, "");
  const isTyped = types.has(name) || types.get(base) === "histogram";
  const series = `${name}{${labelText}}`;
  if (!isTyped || seen.has(series) || !/^[+-]?(\d|Inf|NaN)/.test(value)) throw new Error(`malformed: ${line}`);
  seen.add(series);
  return { name, labels: parseLabels(labelText, line), value: Number(value) };
}

function parseLabels(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const match = LABEL.exec(text);
    if (match === null) throw new Error(`malformed: ${line}`);
    labels[match[1] as string] = match[2] as string;
  }
  return labels;
}

/** Units that are no base units, and abbreviations of those that are. */
const NO_BASE_UNIT =
  /_(?:milliseconds?|microseconds?|nanoseconds?|minutes?|hours?|days?|kilobytes?|megabytes?|kibibytes?|mebibytes?|bits?|percent|ms|us|ns|sec|secs|s|min|h|b|kb|mb|kib|mib)(?:_|$)/;

/**
 * What `promtool check metrics` finds wrong with an exposition, by its rules; none where it would say nothing.
 *
 * @see https://prometheus.io/docs/practices/naming/
 */
export function lintExposition(text: string): string[] {
  const samples = parseExposition(text);
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = "", type = ""]) => [name, type]));
  const helped = new Set([...text.matchAll(/^# HELP (\S+) \S/gm)].map(([, name]) => name));
  return [...types].flatMap(([name, type]) => {
    const own = samples.filter(
      (sample) => sample.name.replace(/_(?:bucket|sum|count)$/, "") === name || sample.name === name,
    );
    const labels = [...new Set(own.flatMap((sample) => Object.keys(sample.labels)))];
    const rules: Array<readonly [isBroken: boolean, problem: string]> = [
      [!helped.has(name), "no help text"],
      [(type === "counter") !== name.endsWith("_total"), 'a counter, and nothing else, has the suffix "_total"'],
      [/_(?:bucket|count|sum)$/.test(name), "the suffix is that of a part of a histogram or summary"],
      [type !== "histogram" && labels.includes("le"), 'the label "le" is a histogram\'s'],
      [labels.includes("quantile"), 'the label "quantile" is a summary\'s'],
      [NO_BASE_UNIT.test(name), "the unit is no base unit, or abbreviated"],
      [name.includes(":"), "colons are for recording rules"],
      [[name, ...labels].some((word) => /[a-z][A-Z]/.test(word)), "names are in snake_case"],
      [/_(?:counter|gauge|histogram|summary)(?:_|$)/.test(name), "the name has the type in it"],
    ];
    return rules.flatMap(([isBroken, problem]) => (isBroken ? [`${name}: ${problem}`] : []));
  });
}
