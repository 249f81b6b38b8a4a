/**
 * Upload queue with limited concurrency.
 *
 * Invariants: each file is in exactly one state, and the counts match the states; only waiting and sending uploads
 * hold a file.
 *
 * Must not: use the network or the page; {@link Transport} and {@link QueueContext} do.
 */
import { signal, type ReadonlySignal } from "@preact/signals";
import type { ApiFailure } from "../api/failure";
import { UPLOAD_BYTES_MAX } from "../api/rules";
import { bytes } from "../format/number";
import { inPipeline, keyProblem, pipelineOf } from "./keys";
import { Rate } from "./rate";

/**
 * `exists`: the key is taken and waits for a decision. `kept`: the existing file stays. `refused`: invalid, nothing
 * was sent.
 */
export type UploadState =
  "waiting" | "sending" | "resting" | "exists" | "done" | "kept" | "failed" | "refused" | "cancelled";

export interface Upload {
  readonly id: number;
  readonly key: string;
  readonly size: number;
  readonly batch: Batch;
  /** Compressed when it is sent. */
  readonly pack: boolean;
  /** An existing file is replaced, whatever holds for the others. */
  readonly replace: boolean;
  state: UploadState;
  sent: number;
  /** Bytes compressed so far, before the first one is sent. */
  packed: number | undefined;
  attempts: number;
  /** Cause of the failure, and what to do. */
  why?: string;
  file: Blob | undefined;
}

/** Files of one drop or choice. */
export interface Batch {
  readonly files: number;
  /** Whether existing files are replaced; unset: ask. */
  replace: boolean | undefined;
  /** Files that haven't ended. */
  left: number;
  /** Resolves when none is left. */
  readonly ended: Promise<void>;
  readonly uploads: Upload[];
}

export type Sent = { done: true } | { done: false; failure: ApiFailure };

/** Sends one file. */
export type Transport = (
  upload: { key: string; file: Blob; replace: boolean; pack: boolean },
  onSent: (bytes: number) => void,
  /** Bytes of the file that are compressed; nothing is sent before all are. */
  onPacked: (bytes: number) => void,
) => { ended: Promise<Sent>; abort: () => void };

interface QueueContext {
  now: () => number;
  later: (ms: number, run: () => void) => void;
  /** Whether session and service are available. */
  ready: () => boolean;
  /** All files of a batch ended. */
  onEnded: (batch: Batch) => void;
}

export const CONCURRENCY_MAX = 3;
const ATTEMPTS_MAX = 5;
const BACKOFF_FIRST_MS = 1_000;
const BACKOFF_LAST_MS = 30_000;
/** Batches that are remembered after they ended. */
const EARLIER_MAX = 10;
/** Progress interval. */
const PROGRESS_MS = 100;

const ENDED: readonly UploadState[] = ["done", "kept", "failed", "refused", "cancelled"];
const hasEnded = (state: UploadState): boolean => ENDED.includes(state);

type Counts = Record<UploadState, number>;
const none = (): Counts => ({
  waiting: 0,
  sending: 0,
  resting: 0,
  exists: 0,
  done: 0,
  kept: 0,
  failed: 0,
  refused: 0,
  cancelled: 0,
});

/** State of the queue; a new object for each change. */
export interface QueueState {
  counts: Counts;
  files: number;
  bytesTotal: number;
  bytesSent: number;
  /** Files that are being compressed: bytes done and in total. */
  packing: { done: number; total: number } | undefined;
  /** Bytes per second. */
  rate: number;
  /** Seconds left, if known. */
  secondsLeft: number | undefined;
  paused: boolean;
  /** Whether uploads are running or waiting. */
  active: boolean;
}

export class UploadQueue {
  private uploads: Upload[] = [];
  /** Ended batches before those of `uploads`, newest first. */
  private earlier: Batch[] = [];
  private waiting: Upload[] = [];
  private readonly running = new Map<Upload, () => void>();
  private counts = none();
  private bytesTotal = 0;
  private bytesEnded = 0;
  private paused = false;
  private readonly rate: Rate;
  private lastId = 0;
  private publishing = false;
  private readonly ends = new Map<Batch, () => void>();
  private readonly published = signal<QueueState>(this.snapshot());
  readonly state: ReadonlySignal<QueueState> = this.published;

  constructor(
    private readonly transport: Transport,
    private readonly around: QueueContext,
  ) {
    this.rate = new Rate(around.now);
    this.published.value = this.snapshot();
  }

  /** Adds files; invalid ones are reported at once. */
  add(files: { key: string; file: Blob; pack?: boolean; replace?: boolean }[], replace?: boolean): Batch {
    this.setAside();
    let end = () => undefined as void;
    const ended = new Promise<void>((resolve) => (end = resolve));
    const batch: Batch = { files: files.length, replace, left: files.length, ended, uploads: [] };
    this.ends.set(batch, end);
    for (const { key, file, pack = false, replace: own = false } of files) {
      this.lastId += 1;
      const upload: Upload = {
        id: this.lastId,
        key,
        size: file.size,
        batch,
        pack,
        replace: own,
        state: "waiting",
        sent: 0,
        packed: undefined,
        attempts: 0,
        file,
      };
      this.uploads.push(upload);
      batch.uploads.push(upload);
      this.counts.waiting += 1;
      this.bytesTotal += file.size;
      const why = refusal(key, file.size, pack);
      if (why === undefined) this.waiting.push(upload);
      else this.become(upload, "refused", why);
    }
    if (files.length === 0) this.end(batch);
    this.work();
    return batch;
  }

  /** Files to list first: failed, sending, next. */
  shown(limit: number): Upload[] {
    const order: UploadState[] = [
      "failed",
      "refused",
      "exists",
      "sending",
      "resting",
      "waiting",
      "cancelled",
      "kept",
      "done",
    ];
    const shown: Upload[] = [];
    for (const state of order) {
      if (shown.length >= limit) break;
      if (this.counts[state] === 0) continue;
      for (const upload of this.uploads) {
        if (upload.state === state) shown.push(upload);
        if (shown.length >= limit) break;
      }
    }
    return shown;
  }

  /** Files whose keys are taken, which wait for a decision. */
  existing(): Upload[] {
    return this.uploads.filter(({ state }) => state === "exists");
  }

  /** The counted batches, newest first. */
  batches(): Batch[] {
    return [...new Set(this.uploads.map(({ batch }) => batch))].reverse();
  }

  /** The last batches that ended, newest first; also those that are no longer counted. */
  ended(limit: number): Batch[] {
    const batches = [...this.batches(), ...this.earlier].filter(({ left }) => left === 0);
    return batches.slice(0, limit);
  }

  /** Uploaded files of a batch by pipeline, relative to its folder. Those that a later batch replaced are of that one. */
  uploadedBy(batch: Batch): Map<string, string[]> {
    const all = [...this.batches(), ...this.earlier].reverse().flatMap(({ uploads }) => uploads);
    const last = new Map(all.filter(({ state }) => state === "done").map((one) => [one.key, one.batch]));
    const found = new Map<string, string[]>();
    for (const { key } of batch.uploads) {
      const slug = pipelineOf(key);
      if (slug === undefined || last.get(key) !== batch) continue;
      const keys = found.get(slug) ?? [];
      keys.push(inPipeline(slug, key));
      found.set(slug, keys);
    }
    return found;
  }

  pause(): void {
    this.paused = true;
    for (const [upload, abort] of [...this.running]) {
      this.running.delete(upload);
      upload.attempts -= 1;
      this.again(upload, true);
      abort();
    }
    this.publish();
  }

  resume(): void {
    this.paused = false;
    this.work();
  }

  /** Starts uploads if possible. */
  work(): void {
    while (!this.paused && this.running.size < CONCURRENCY_MAX && this.around.ready()) {
      const next = this.waiting.shift();
      if (!next) break;
      if (next.state === "waiting") this.send(next);
    }
    this.publish();
  }

  cancel(upload: Upload): void {
    if (hasEnded(upload.state)) return;
    const abort = this.running.get(upload);
    this.running.delete(upload);
    this.become(upload, "cancelled");
    abort?.();
    this.work();
  }

  cancelAll(): void {
    for (const upload of this.uploads) {
      if (hasEnded(upload.state)) continue;
      const abort = this.running.get(upload);
      this.running.delete(upload);
      this.become(upload, "cancelled");
      abort?.();
    }
    this.waiting = [];
    this.paused = false;
    this.work();
  }

  /** Retries failed files: one, those of a batch, or all. */
  retry(only?: Upload | Batch): void {
    const meant = only === undefined ? this.uploads : "uploads" in only ? only.uploads : [only];
    const failed = meant.filter(({ state, file }) => state === "failed" && file);
    this.recall(failed);
    for (const upload of failed) {
      upload.attempts = 0;
      this.bytesEnded -= upload.size;
      upload.batch.left += 1;
      this.again(upload);
    }
    this.work();
  }

  /** Decides about existing files, also for the rest of their batches. */
  decide(replace: boolean): void {
    for (const upload of this.uploads) {
      if (upload.state !== "exists") continue;
      upload.batch.replace = replace;
      if (replace) this.again(upload);
      else this.become(upload, "kept");
    }
    this.work();
  }

  /** Begins the counts anew, so that they are about one upload. */
  private setAside(): void {
    const { waiting, sending, resting, exists, failed, refused } = this.counts;
    if (waiting + sending + resting + exists + failed + refused > 0) return;
    this.earlier = [...this.batches(), ...this.earlier].slice(0, EARLIER_MAX);
    this.forget();
  }

  /** Removes ended files. */
  clear(): void {
    if (this.published.value.active) return;
    this.earlier = [];
    this.forget();
    this.publish();
  }

  private forget(): void {
    this.uploads = [];
    this.waiting = [];
    this.counts = none();
    this.bytesTotal = 0;
    this.bytesEnded = 0;
    this.paused = false;
  }

  /** Restores cleared files, so that the counts match. */
  private recall(failed: Upload[]): void {
    const known = new Set(this.uploads);
    for (const upload of failed) {
      if (known.has(upload)) continue;
      this.uploads.push(upload);
      this.counts.failed += 1;
      this.bytesTotal += upload.size;
      this.bytesEnded += upload.size;
    }
  }

  private send(upload: Upload): void {
    const { file, key, batch, pack } = upload;
    if (!file) return;
    upload.attempts += 1;
    this.become(upload, "sending");
    const onSent = (bytes: number) => {
      if (!this.running.has(upload)) return;
      const sent = Math.min(bytes, upload.size);
      this.rate.add(sent - upload.sent);
      upload.sent = sent;
      upload.packed = undefined;
      this.publish();
    };
    const onPacked = (bytes: number) => {
      if (!this.running.has(upload)) return;
      upload.packed = bytes;
      this.publish();
    };
    const replace = upload.replace || batch.replace === true;
    const { ended, abort } = this.transport({ key, file, replace, pack }, onSent, onPacked);
    this.running.set(upload, abort);
    void ended.then((sent) => {
      // Already decided by pause or cancel.
      if (!this.running.delete(upload)) return;
      if (sent.done) this.become(upload, "done");
      else this.failed(upload, sent.failure);
      this.work();
    });
  }

  private failed(upload: Upload, failure: ApiFailure): void {
    if (failure.status === 412 && upload.batch.replace === undefined) return this.become(upload, "exists");
    if (failure.status === 412 && upload.batch.replace === false) return this.become(upload, "kept");
    if (failure.status === 401) {
      // Not the file's fault: waits for the session.
      upload.attempts -= 1;
      return this.again(upload, true);
    }
    const passing = failure.passing || failure.status === 412;
    if (!passing || failure.code === "unreadable" || upload.attempts >= ATTEMPTS_MAX)
      return this.become(upload, "failed", failure.message);
    const own = Math.min(BACKOFF_FIRST_MS * 2 ** (upload.attempts - 1), BACKOFF_LAST_MS);
    this.become(upload, "resting", failure.message);
    this.around.later(failure.retryAfter === undefined ? own : failure.retryAfter * 1_000, () => {
      if (upload.state !== "resting") return;
      this.again(upload, true);
      this.work();
    });
  }

  private again(upload: Upload, first = false): void {
    this.become(upload, "waiting");
    if (first) this.waiting.unshift(upload);
    else this.waiting.push(upload);
  }

  private become(upload: Upload, state: UploadState, why?: string): void {
    this.counts[upload.state] -= 1;
    this.counts[state] += 1;
    upload.state = state;
    if (why === undefined) delete upload.why;
    else upload.why = why;
    upload.sent = state === "done" ? upload.size : 0;
    upload.packed = undefined;
    if (!hasEnded(state)) return this.publish();
    this.bytesEnded += upload.size;
    // Failed files can be retried; others release their file.
    if (state !== "failed") upload.file = undefined;
    upload.batch.left -= 1;
    if (upload.batch.left === 0) this.end(upload.batch);
    this.publish();
  }

  private end(batch: Batch): void {
    this.ends.get(batch)?.();
    this.ends.delete(batch);
    this.around.onEnded(batch);
  }

  private publish(): void {
    if (this.publishing) return;
    this.publishing = true;
    this.around.later(PROGRESS_MS, () => {
      this.publishing = false;
      this.published.value = this.snapshot();
    });
  }

  private snapshot(): QueueState {
    const { counts } = this;
    const active = counts.waiting + counts.sending + counts.resting + counts.exists > 0;
    let bytesSent = this.bytesEnded;
    let packing: QueueState["packing"];
    for (const upload of this.running.keys()) {
      bytesSent += upload.sent;
      if (upload.packed !== undefined)
        packing = { done: (packing?.done ?? 0) + upload.packed, total: (packing?.total ?? 0) + upload.size };
    }
    const rate = active && !this.paused ? (this.rate?.perSecond() ?? 0) : 0;
    return {
      counts: { ...counts },
      files: this.uploads.length,
      bytesTotal: this.bytesTotal,
      bytesSent,
      packing,
      rate,
      secondsLeft: rate > 0 ? (this.bytesTotal - bytesSent) / rate : undefined,
      paused: this.paused,
      active,
    };
  }
}

function refusal(key: string, size: number, pack: boolean): string | undefined {
  if (size > UPLOAD_BYTES_MAX && !pack)
    return `larger than ${bytes(UPLOAD_BYTES_MAX)}. Upload it to a table, which sends it compressed and in parts, or copy it to the lake's bucket directly.`;
  const problem = keyProblem(key);
  return problem === undefined ? undefined : `${problem}. Rename it and add it again.`;
}
