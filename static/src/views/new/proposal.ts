/** Stages a source for the service and infers a proposal. */
import { useEffect, useRef } from "preact/hooks";
import { signal, useSignal, type Signal } from "@preact/signals";
import { api, ask } from "../../api/client";
import { asFailure, type ApiFailure } from "../../api/failure";
import type { Inferred } from "../../api/types";
import { keepAlive, release, stage, sweep, type Source, type Staged } from "./staging";

export type Proposal =
  | { phase: "staging"; sent: number; total: number }
  | { phase: "inferring" }
  | { phase: "failed"; error: ApiFailure }
  | { phase: "ready"; staged: Staged; inferred: Inferred };

/** Proposal for a source; staged samples are deleted with the view or the source. */
export function useProposal(source: Source | undefined): [Signal<Proposal | undefined>, () => void] {
  const state = useSignal<Proposal | undefined>(undefined);
  const round = useSignal(0);
  const again = useRef(() => {
    round.value += 1;
  });
  const now = round.value;
  useEffect(() => sweep(), []);
  useEffect(() => {
    if (!source) {
      state.value = undefined;
      return undefined;
    }
    const work = new Work(source, state);
    void work.go();
    return () => work.end();
    // A new round is a new try.
  }, [source, now, state]);
  return [state, again.current];
}

class Work {
  private staged: Staged | undefined;
  private letGo: () => void = () => undefined;
  private ended = false;

  constructor(
    private readonly source: Source,
    private readonly state: Signal<Proposal | undefined> = signal(undefined),
  ) {}

  async go(): Promise<void> {
    try {
      this.publish({ phase: "staging", sent: 0, total: 0 });
      const staged = await stage(this.source, (sent, total) => this.publish({ phase: "staging", sent, total }));
      this.staged = staged;
      if (this.ended) return void (await release(staged));
      this.letGo = keepAlive(staged);
      this.publish({ phase: "inferring" });
      const params = { path: { pipeline: staged.slug }, query: { key: staged.key } };
      const inferred = await ask(api.POST("/api/p/{pipeline}/infer", { params }));
      this.publish({ phase: "ready", staged, inferred });
    } catch (error) {
      this.publish({ phase: "failed", error: asFailure(error) });
    }
  }

  end(): void {
    this.ended = true;
    this.letGo();
    if (this.staged) void release(this.staged);
  }

  private publish(state: Proposal): void {
    if (!this.ended) this.state.value = state;
  }
}
