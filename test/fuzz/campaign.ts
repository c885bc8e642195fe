/** What every campaign can be told. */
export interface CampaignOptions {
  /** How many inputs to try. */
  readonly count: number;
  /** Same seed, same inputs. */
  readonly seed: number;
}

/** One input that broke a promise. */
export interface Finding {
  readonly problem: string;
  /** The input, shrunk as far as it goes, as JavaScript. */
  readonly input: string;
  /** What fast-check needs to make it again, or where else it comes from. */
  readonly origin: string;
}

/** What a campaign did. */
export interface CampaignResult {
  /** Inputs tried. */
  readonly tried: number;
  /** Worth knowing beside the number: calls made, memory and sockets before and after. */
  readonly notes: readonly string[];
  readonly findings: readonly Finding[];
}

/** Sends many inputs to a real relay and holds it to its promises. */
export type Campaign = (options: CampaignOptions) => Promise<CampaignResult>;

/** Fails the input at hand, in words. */
export function mustHold(holds: boolean, problem: string): asserts holds {
  if (!holds) throw new Error(problem);
}

/** What was wrong with all inputs together. */
export function findingOfRun(problem: string): Finding {
  return { problem, input: "the whole run", origin: "checked at its end" };
}
