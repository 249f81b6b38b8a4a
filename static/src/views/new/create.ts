/**
 * Creates a pipeline from a draft: create, config, upload, run.
 *
 * Invariant: completed steps aren't repeated, so a failure can be fixed and resumed.
 */
import { signal } from "@preact/signals";
import { api, ask, sendRaw } from "../../api/client";
import { client, isActive, keys } from "../../api/queries";
import { ApiFailure, asFailure } from "../../api/failure";
import type { Job, PipelineDetail } from "../../api/types";
import { count, counted } from "../../format/number";
import { uploads } from "../../uploads";
import { nameOf, pipelineOf } from "../../uploads/keys";
import { isCsv, variantsOf } from "../../uploads/source-names";
import type { Batch } from "../../uploads/queue";
import type { Source } from "./staging";

export type Step = "create" | "config" | "upload" | "run" | "done";

export interface Making {
  step: Step;
  failure?: { step: Step; error: ApiFailure };
  batch?: Batch;
  /** When the automatic run starts. */
  due?: string | null;
  job?: Job;
}

export interface Plan {
  slug: string;
  source: Source;
  /** Files with their keys. */
  files: { key: string; file: File }[];
  config: object;
}

const ASK_MS = 1_000;
/** Polls without a due or active run before one is enqueued. */
const LOOKS_MAX = 3;

/** Creation of one pipeline; continues without the view, up to the run. */
export class PipelineCreation {
  readonly state = signal<Making | undefined>(undefined);
  private created = false;
  private saved = false;
  private batch: Batch | undefined;
  private asked = false;
  private stopped = false;

  /** Whether the slug is fixed. */
  get begun(): boolean {
    return this.created;
  }

  /** Does the remaining steps; true if the run has completed and the view is still open. */
  async make(plan: Plan): Promise<boolean> {
    this.stopped = false;
    const steps: [Step, () => Promise<void>][] = [
      ["create", () => this.create(plan)],
      ["config", () => this.save(plan)],
      ["upload", () => this.upload(plan)],
      ["run", () => this.run(plan)],
    ];
    for (const [step, work] of steps) {
      this.tell({ step });
      try {
        await work();
      } catch (error) {
        this.tell({ step, failure: { step, error: asFailure(error) } });
        return false;
      }
    }
    this.tell({ step: "done" });
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

  private tell(now: Partial<Making> & { step: Step }): void {
    const before = this.state.value;
    this.state.value = {
      ...(this.batch ? { batch: this.batch } : {}),
      ...(before?.job && now.step === "run" ? { job: before.job } : {}),
      ...now,
    };
  }

  private async create({ slug, source }: Plan): Promise<void> {
    if (this.created) return;
    const body =
      source.kind === "lake"
        ? ({ slug, template: "from-csv", key: source.key } as const)
        : ({ slug, template: "blank" } as const);
    await ask(api.POST("/api/pipelines", { body }));
    this.created = true;
    void client.invalidateQueries({ queryKey: keys.pipelines });
  }

  private async save({ slug, config }: Plan): Promise<void> {
    if (this.saved) return;
    const path = `/api/p/${encodeURIComponent(slug)}/config`;
    const there = await sendRaw(path);
    const etag = there.headers.get("ETag");
    await sendRaw(`${path}?strict=1`, {
      method: "PUT",
      body: JSON.stringify(config, null, 2),
      headers: { "Content-Type": "application/json", ...(etag ? { "If-Match": etag } : {}) },
    });
    this.saved = true;
  }

  private async upload({ files }: Plan): Promise<void> {
    if (files.length === 0) return;
    if (!this.batch) this.batch = uploads.add(files, true);
    else uploads.retry(this.batch);
    this.tell({ step: "upload", batch: this.batch });
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
      `${count(lost.length)} of ${counted(files.length, "file")} failed to upload: ${nameOf(lost[0]?.key ?? "")}: ${why}`,
    );
  }

  /** Waits for the automatic run; enqueues one only if none comes. */
  private async run({ slug, files, source }: Plan): Promise<void> {
    const startsItself = source.kind === "lake" ? isCsv(source.key) : files.some(({ key }) => isCsv(key));
    if (!startsItself || this.asked) await this.ask(slug);
    for (let idle = 0; ; await waited(ASK_MS)) {
      const [due, job] = await look(slug);
      this.tell({ step: "run", due, ...(job ? { job } : {}) });
      if (job && !isActive(job) && due === null) return ended(job);
      // A due run needs no watching.
      if (this.stopped && (due !== null || (job && isActive(job)))) return;
      idle = job || due !== null ? 0 : idle + 1;
      if (idle >= LOOKS_MAX) await this.ask(slug);
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
async function look(slug: string): Promise<[string | null, Job | undefined]> {
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

/** Keys of the files, in a folder named after the table, without duplicates. */
export function keysOf(slug: string, table: string, files: File[]): { key: string; file: File }[] {
  const taken = new Set<string>();
  return files.map((file) => {
    const [, stem = file.name, ending = ""] = /^(.*?)((?:\.[a-z0-9]{1,4}){0,2})$/i.exec(file.name) ?? [];
    let name = file.name;
    for (let twin = 2; taken.has(name); twin += 1) name = `${stem}-${twin}${ending}`;
    taken.add(name);
    return { key: `pipelines/${slug}/${table}/${name}`.normalize("NFC"), file };
  });
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
  const own = pipelineOf(source.key) === slug ? source.key.slice(`pipelines/${slug}/`.length) : nameOf(source.key);
  return [own.replace(/[*?[\]{}]/g, "[$&]")];
}
