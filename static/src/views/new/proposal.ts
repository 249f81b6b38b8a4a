/** Stages samples of a source for the service and infers a proposal. */
import { useEffect, useRef } from "preact/hooks";
import { signal, useSignal, type Signal } from "@preact/signals";
import { ofFiles } from "../../api/drafts";
import { asFailure, type ApiFailure } from "../../api/failure";
import type { Inferred } from "../../api/types";
import { nameOf } from "../../uploads/keys";
import {
  csvOfSample,
  inferSamples,
  keepAlive,
  release,
  stage,
  stagePiece,
  sweep,
  type Source,
  type Staged,
} from "../../uploads/staging";

export type Proposal =
  | { phase: "staging"; sent: number; total: number }
  | { phase: "inferring" }
  | { phase: "failed"; error: ApiFailure }
  | Ready;

export interface Ready {
  phase: "ready";
  /** The first sample, whose rows are shown. */
  staged: Staged;
  /** All samples that the proposal is made from. */
  samples: Staged[];
  /** The last rows of the first file, if its sample's first rows are not all. */
  tail: Staged | undefined;
  /** Whether the samples have every row of the source. */
  complete: boolean;
  inferred: Inferred;
}

/** Rows of the first file that are shown. */
export const PREVIEW_ROWS = 50;
/** Files of a proposal. */
const KEYS_MAX = 16;

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
  private staged: Staged[] = [];
  private letGo: (() => void)[] = [];
  private ended = false;

  constructor(
    private readonly source: Source,
    private readonly state: Signal<Proposal | undefined> = signal(undefined),
  ) {}

  async go(): Promise<void> {
    try {
      this.publish({ phase: "staging", sent: 0, total: 0 });
      await stage(
        this.source,
        (one) => this.keep(one),
        (sent, total) => this.publish({ phase: "staging", sent, total }),
      );
      const samples = [...this.staged];
      const [staged] = samples;
      if (this.ended || !staged) return;
      this.publish({ phase: "inferring" });
      const inferred = await proposed(samples);
      const [pieces, tail] = await this.pieces(samples, inferred);
      if (this.ended) return;
      const all = [...samples, ...pieces].slice(0, KEYS_MAX);
      const ready = pieces.length > 0 ? await withPieces(samples, all, inferred) : { samples, inferred };
      const files = this.source.kind === "files" ? this.source.files.length : 1;
      const complete = ready.inferred.sample.whole && samples.every(({ whole }) => whole) && samples.length >= files;
      this.publish({ phase: "ready", staged, tail, complete, ...ready });
    } catch (error) {
      const { source, staged } = this;
      const name = source.kind === "files" ? (source.files[0]?.name ?? "") : source.key;
      this.publish({ phase: "failed", error: ofFiles(asFailure(error), staged, name) });
    }
  }

  /** Pieces of the files that are larger than their samples, and the end of the first file. */
  private async pieces(samples: Staged[], inferred: Inferred): Promise<[Staged[], Staged | undefined]> {
    const { sample } = inferred;
    const files = this.source.kind === "files" ? this.source.files : [];
    const fileOf = (staged: Staged) => files.find(({ name }) => name === staged.name);
    const made: Staged[] = [];
    let tail: Staged | undefined;
    for (const [nth, staged] of samples.entries()) {
      const file = fileOf(staged);
      const isShown = nth === 0 && sample.rows_read > PREVIEW_ROWS;
      if (!file || (staged.whole && !isShown)) continue;
      for (const piece of staged.whole ? (["end"] as const) : (["middle", "end"] as const)) {
        // Pieces are a help; without them the rest is as good.
        const one = await stagePiece(file, staged, piece, csvOfSample(inferred, staged)).catch(() => undefined);
        if (!one) continue;
        this.keep(one);
        if (!staged.whole) made.push(one);
        if (isShown && piece === "end") tail = one;
      }
    }
    return [made, tail];
  }

  private keep(staged: Staged): void {
    if (this.ended) return void release(staged);
    this.staged.push(staged);
    this.letGo.push(keepAlive(staged));
  }

  end(): void {
    this.ended = true;
    for (const letGo of this.letGo) letGo();
    for (const staged of this.staged) void release(staged);
  }

  private publish(state: Proposal): void {
    if (!this.ended) this.state.value = state;
  }
}

const proposed = async (samples: Staged[]): Promise<Inferred> => withNames(await inferSamples(samples), samples);

/** The proposal with the names of the files in its texts, in place of their samples'. */
export function withNames(inferred: Inferred, samples: readonly Pick<Staged, "key" | "name">[]): Inferred {
  const named = (text: string) =>
    samples.reduce((made, { key, name }) => made.replaceAll(`\`${nameOf(key)}\``, `\`${name}\``), text);
  const columns = inferred.columns.map((column) => {
    const { why, warnings } = column.evidence;
    const evidence = { ...column.evidence, why: named(why), ...(warnings ? { warnings: warnings.map(named) } : {}) };
    return { ...column, evidence };
  });
  return { ...inferred, warnings: inferred.warnings.map(named), columns };
}

/** The names of the files of a variant: those of its samples, and others that begin like one of them. */
export function namesOfVariant(source: Source, samples: readonly Staged[], keys: readonly string[]): string[] {
  if (source.kind === "lake") return [];
  const sampled = new Set(samples.map(({ name }) => name));
  const own = new Set(samples.filter(({ key }) => keys.includes(key)).map(({ name }) => name));
  const { files, formats } = source;
  const formatsOf = (isWanted: (name: string) => boolean) =>
    files.filter(({ name }) => sampled.has(name) && isWanted(name)).map((file) => formats?.get(file));
  // Where samples that begin alike differ, nothing is known of the others.
  const others = new Set(formatsOf((name) => !own.has(name)));
  const like = new Set(formatsOf((name) => own.has(name)).filter((format) => !others.has(format)));
  const isOwn = (file: File) =>
    own.has(file.name) || (!sampled.has(file.name) && formats?.has(file) && like.has(formats.get(file)));
  return files.filter(isOwn).map(({ name }) => name);
}

/** The proposal with the pieces; without those that begin within a row, whose records can't be read. */
async function withPieces(
  samples: Staged[],
  all: Staged[],
  before: Inferred,
): Promise<{ samples: Staged[]; inferred: Inferred }> {
  const inferred = await proposed(all);
  const refused = new Set(inferred.files_failed.map(({ key }) => key));
  for (const { key, rows_refused } of inferred.files_read) if (rows_refused > 0) refused.add(key);
  // A piece has the format of its file.
  const starts = new Set(samples.map(({ key }) => key));
  for (const { keys } of inferred.variants ?? [])
    if (!keys.some((key) => starts.has(key))) keys.forEach((key) => refused.add(key));
  const good = all.filter(({ piece, key }) => piece === undefined || !refused.has(key));
  if (good.length === all.length) return { samples: all, inferred };
  if (good.length === samples.length) return { samples, inferred: before };
  return { samples: good, inferred: await proposed(good) };
}
