/** Counts calls and their times within a window. */
export class Tally {
  readonly #times = new Float64Array(2_000_000);
  #calls = 0;
  #beganAt = Number.POSITIVE_INFINITY;

  /** In the window so far. */
  get calls(): number {
    return this.#calls;
  }

  begin(): void {
    this.#calls = 0;
    this.#beganAt = performance.now();
  }

  /** One call that began then, in milliseconds of `performance.now()`. */
  count(startedAt: number): void {
    const now = performance.now();
    if (now < this.#beganAt) return;
    this.#times[this.#calls % this.#times.length] = now - startedAt;
    this.#calls++;
  }

  end(): { calls: number; seconds: number; p50Us: number; p99Us: number } {
    const seconds = (performance.now() - this.#beganAt) / 1000;
    const times = this.#times.slice(0, this.#calls).sort();
    const at = (share: number) => (times[Math.floor(times.length * share)] ?? 0) * 1000;
    return { calls: this.#calls, seconds, p50Us: at(0.5), p99Us: at(0.99) };
  }
}
