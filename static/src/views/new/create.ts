/**
 * Creates a pipeline from a draft: create, config, upload, run.
 *
 * Invariant: completed steps aren't repeated, so a failure can be fixed and resumed.
 */
import { signal } from "@preact/signals";
import { api, ask } from "../../api/client";
import { loadConfig, saveConfig, type StoredConfig } from "../../api/config";
import { client, isActive, keys } from "../../api/queries";
import { ApiFailure, asFailure } from "../../api/failure";
import type { Job, PipelineDetail } from "../../api/types";
import { count, counted } from "../../format/number";
import { uploads } from "../../uploads";
import { exactGlob } from "../../uploads/globs";
import { inPipeline, nameOf, pipelineOf } from "../../uploads/keys";
import { sendParts, type KeyedPart } from "../../uploads/send";
import { isSource, variantsOf } from "../../uploads/source-names";
import type { Batch } from "../../uploads/queue";
import { configOf } from "./draft";
import type { Source } from "../../uploads/staging";

export type Step = "create" | "config" | "upload" | "run" | "done";

export interface CreationState {
  step: Step;
  failure?: { step: Step; error: ApiFailure };
  batch?: Batch;
  /** When the automatic run starts. */
  due?: string | null;
  job?: Job;
}

export interface Plan {
  slug: string;
  title: string;
  /** The pipeline exists: tables are added to its config. */
  existing: boolean;
  /** A file of the lake that is copied to the new pipeline. */
  lakeKey?: string;
  /** Mappings of the new tables. */
  mappings: Record<string, unknown>[];
  /** Files to upload. */
  parts: KeyedPart[];
}

const POLL_MS = 1_000;
/** Polls without a due or active run before one is enqueued. */
const IDLE_POLLS_MAX = 3;

/** Creation of one pipeline; continues without the view, up to the run. */
export class PipelineCreation {
  readonly state = signal<CreationState | undefined>(undefined);
  private created = false;
  private saved = false;
  private batch: Batch | undefined;
  private asked = false;
  private stopped = false;
  /** Tables that an earlier attempt added. */
  private tables: ReadonlySet<string> = new Set();
  private slug: string | undefined;
  /** The newest job before the config was saved. */
  private before: string | undefined;

  /** Whether something was created. */
  get begun(): boolean {
    return this.created || this.saved || this.tables.size > 0;
  }

  /** The pipeline that further attempts go on with; undefined before anything was created. */
  get target(): string | undefined {
    return this.begun ? this.slug : undefined;
  }

  /** Does the remaining steps; true if the run has completed and the view is still open. */
  async make(plan: Plan): Promise<boolean> {
    this.stopped = false;
    this.slug = plan.slug;
    const steps: [Step, () => Promise<void>][] = [
      ["create", () => this.create(plan)],
      ["config", () => this.save(plan)],
      ["upload", () => this.upload(plan)],
      ["run", () => this.run(plan)],
    ];
    for (const [step, work] of steps) {
      this.publish({ step });
      try {
        await work();
      } catch (error) {
        this.publish({ step, failure: { step, error: asFailure(error) } });
        return false;
      }
    }
    this.publish({ step: "done" });
    return !this.stopped;
  }

  /** The view is gone: creation continues, but the run isn't watched. */
  stop(): void {
    this.stopped = true;
  }

  get unwatched(): boolean {
    return this.stopped;
  }

  /** Repeats the steps for config or files. */
  again(): void {
    this.saved = false;
    this.asked = false;
    this.state.value = undefined;
  }

  private publish(now: Partial<CreationState> & { step: Step }): void {
    const before = this.state.value;
    this.state.value = {
      ...(this.batch ? { batch: this.batch } : {}),
      ...(before?.job && now.step === "run" ? { job: before.job } : {}),
      ...now,
    };
  }

  private async create({ slug, existing, lakeKey }: Plan): Promise<void> {
    if (this.created || existing) return;
    const body =
      lakeKey === undefined
        ? ({ slug, template: "blank" } as const)
        : ({ slug, template: "from-csv", key: lakeKey } as const);
    await ask(api.POST("/api/pipelines", { body }));
    this.created = true;
    void client.invalidateQueries({ queryKey: keys.pipelines });
  }

  private async save({ slug, title, existing, mappings }: Plan): Promise<void> {
    if (this.saved) return;
    this.before = (await pollState(slug))[1]?.job_id;
    const stored = await loadConfig(slug);
    const config = existing ? merged(stored.config, mappings, this.tables) : configOf(title, mappings);
    await saveConfig(slug, config, stored.etag);
    this.tables = new Set(mappings.map(({ table }) => String(table)));
    this.saved = true;
  }

  private async upload({ parts }: Plan): Promise<void> {
    if (parts.length === 0) return;
    if (!this.batch) this.batch = sendParts(parts, true);
    else uploads.retry(this.batch);
    this.publish({ step: "upload", batch: this.batch });
    await this.batch.ended;
    // Retries of single files end later than the batch.
    await new Promise<void>((resolve) => {
      const stop = uploads.state.subscribe(() => {
        if (this.batch?.left === 0) queueMicrotask(() => (stop(), resolve()));
      });
    });
    const lost = this.batch.uploads.filter(({ state }) => state !== "done");
    if (lost.length === 0) return;
    const why = lost[0]?.why ?? "the upload was cancelled";
    if (lost.some(({ state }) => state !== "failed")) this.batch = undefined;
    throw new ApiFailure(
      0,
      "upload",
      `${count(lost.length)} of ${counted(parts.length, "file")} failed to upload: ${nameOf(lost[0]?.key ?? "")}: ${why}`,
    );
  }

  /** Waits for the automatic run; enqueues one only if none comes. */
  private async run({ slug, parts, existing, lakeKey }: Plan): Promise<void> {
    // A file that was there already starts nothing.
    const startsAutomatically =
      lakeKey === undefined ? parts.some(({ key }) => isSource(nameOf(key))) : !existing && isSource(nameOf(lakeKey));
    if (!startsAutomatically || this.asked) await this.ask(slug);
    for (let idle = 0; ; await waited(POLL_MS)) {
      const [due, newest] = await pollState(slug);
      const job = newest?.job_id === this.before ? undefined : newest;
      this.publish({ step: "run", due, ...(job ? { job } : {}) });
      if (job && !isActive(job) && due === null) return ended(job);
      // A due run needs no watching.
      if (this.stopped && (due !== null || (job && isActive(job)))) return;
      idle = job || due !== null ? 0 : idle + 1;
      if (idle >= IDLE_POLLS_MAX) await this.ask(slug);
    }
  }

  private async ask(pipeline: string): Promise<void> {
    await ask(api.POST("/api/p/{pipeline}/jobs", { params: { path: { pipeline } } }));
    this.asked = false;
  }

  /** The next attempt starts a new run. */
  rerun(): void {
    this.asked = true;
  }
}

const waited = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The next due time and the newest job. */
async function pollState(slug: string): Promise<[string | null, Job | undefined]> {
  try {
    const listed = await ask(api.GET("/api/pipelines", { params: { query: { details: true } } }));
    const details: PipelineDetail[] = Array.isArray(listed) ? [] : listed.pipelines;
    const { jobs } = await ask(
      api.GET("/api/p/{pipeline}/jobs", { params: { path: { pipeline: slug }, query: { limit: 1 } } }),
    );
    return [details.find((one) => one.slug === slug)?.next_due ?? null, jobs[0]];
  } catch (error) {
    // A temporary failure: the next poll decides.
    const failure = asFailure(error);
    if (failure.passing || failure.status === 401) return ["", undefined];
    throw failure;
  }
}

function ended(job: Job): void {
  void client.invalidateQueries({ queryKey: keys.pipeline(job.pipeline) });
  if (job.status === "completed") return;
  const { code, message, detail } = job.error ?? { code: "internal", message: "the run failed", detail: null };
  throw new ApiFailure(422, code, detail ? `${message} (${detail})` : message);
}

/** The config with the mappings added; `own`: tables of an earlier attempt, which they replace. */
function merged(
  stored: StoredConfig,
  mappings: Record<string, unknown>[],
  own: ReadonlySet<string>,
): Record<string, unknown> {
  const before = stored.mappings ?? [];
  return { ...stored, mappings: [...before.filter(({ table }) => !own.has(String(table))), ...mappings] };
}

/** Globs that match these files and later ones beside them. */
export function globsOf(table: string, names: string[]): string[] {
  return [...new Set(names.flatMap(variantsOf))].map((ending) => `${table}/*${ending}`);
}

/** Globs of a source. A file of the lake is copied to the new pipeline, unless it is there already. */
export function filesOf(source: Source, slug: string, table: string): string[] {
  if (source.kind === "files")
    return globsOf(
      table,
      source.files.map(({ name }) => name),
    );
  const own = pipelineOf(source.key) === slug ? inPipeline(slug, source.key) : nameOf(source.key);
  return [exactGlob(own)];
}
