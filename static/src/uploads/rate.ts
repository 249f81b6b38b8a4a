/** Transfer rate over the last seconds. */
const WINDOW_MS = 5_000;
/** Minimum span for a rate. */
const WINDOW_MS_MIN = 500;

export class Rate {
  private came: { at: number; amount: number }[] = [];
  private sum = 0;
  private since: number | undefined;

  constructor(private readonly now: () => number) {}

  add(amount: number): void {
    const at = this.now();
    this.since ??= at;
    this.came.push({ at, amount });
    this.sum += amount;
    this.forget(at);
  }

  perSecond(): number {
    const at = this.now();
    this.forget(at);
    if (this.since === undefined || this.came.length === 0) {
      this.since = undefined;
      return 0;
    }
    const span = Math.min(at - this.since, WINDOW_MS);
    return span < WINDOW_MS_MIN ? 0 : Math.max(0, (this.sum / span) * 1_000);
  }

  private forget(at: number): void {
    let old = 0;
    for (const { at: when, amount } of this.came) {
      if (when >= at - WINDOW_MS) break;
      this.sum -= amount;
      old += 1;
    }
    if (old > 0) this.came.splice(0, old);
  }
}
