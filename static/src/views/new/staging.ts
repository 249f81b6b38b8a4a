/**
 * Temporary samples in the lake.
 *
 * Invariant: a sample is recorded before its upload until its deletion; leftovers of closed pages are deleted by the
 * next page.
 */
import { api, ask, sendRaw } from "../../api/client";
import { newDraft } from "../../api/drafts";
import { ApiFailure } from "../../api/failure";
import { persisted } from "../../browser/persisted";
import { uploadOnce } from "../../uploads/once";
import { nameOf, pipelineOf } from "../../uploads/keys";
import { headOf, shapeOf } from "../../uploads/parts";
import { compressionOf, stemOf } from "../../uploads/source-names";
import { sampleOf, sampleOfStream, type Sample } from "./sample";

/** Heartbeat interval of an open page; silent pages are gone. */
const SEEN_MS = 30_000;
const SILENT_MS = 5 * 60_000;

/** Larger files aren't checked for being blank. */
const BLANK_BYTES_MAX = 64 << 10;

interface Left {
  key: string;
  seen: number;
}

const isLeft = (value: unknown): value is Left[] =>
  Array.isArray(value) &&
  value.every((one) => typeof one === "object" && one !== null && "key" in one && "seen" in one);

const left = persisted<Left[]>("samples", [], isLeft);

/** Source of a proposal: local files, or a file in the lake. */
export type Source = { kind: "files"; files: File[] } | { kind: "lake"; key: string };

/** Location of a sample for the service. */
export interface Staged {
  slug: string;
  key: string;
  /** Whether it is the whole source. */
  whole: boolean;
  /** Whether it has to be deleted. */
  ours: boolean;
}

/** Uploads a sample. */
export async function stage(source: Source, onSent: (sent: number, total: number) => void): Promise<Staged> {
  if (source.kind === "lake") {
    const slug = pipelineOf(source.key);
    if (slug) return { slug, key: source.key, whole: true, ours: false };
    return await put(await sampleOfLake(source.key), nameOf(source.key), onSent);
  }
  const [file] = source.files;
  if (!file) throw new Error("no file was selected");
  if (file.size === 0) throw noRows();
  return await put(await sampleOf(file), file.name, onSent);
}

async function sampleOfLake(key: string): Promise<Sample> {
  const response = await sendRaw(`/api/lake/object?key=${encodeURIComponent(key)}`);
  if (!response.body) throw new Error("the file is empty");
  return await sampleOfStream(response.body, key);
}

const noRows = () =>
  new ApiFailure(422, "no_rows", "the file has no rows; choose a file with a header and at least one row");

/** Whether an uncompressed sample is blank. */
async function isBlank({ body, whole, ending }: Sample): Promise<boolean> {
  if (body.size === 0) return true;
  if (!whole || ending !== ".txt" || body.size > BLANK_BYTES_MAX) return false;
  return /^[\s\ufeff]*$/.test(await body.text());
}

async function put(sample: Sample, name: string, onSent: (sent: number, total: number) => void): Promise<Staged> {
  if (await isBlank(sample)) throw noRows();
  const slug = newDraft();
  // Names the table: letters without diacritics and without invalid characters.
  const stem = stemOf(name)
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/[^\p{L}\p{N} ._-]/gu, "_")
    .slice(0, 100);
  // Watchers ignore dot-files, so no run starts.
  const key = `pipelines/${slug}/.${stem}${sample.ending}`;
  left.value = [...left.value, { key, seen: Date.now() }];
  await uploadOnce(key, sample.body, (sent) => onSent(sent, sample.body.size));
  return { slug, key, whole: sample.whole, ours: true };
}

/** Bytes of the end of a file that are shown. */
const TAIL_BYTES = 32 << 10;

/** Uploads the last rows of a file below its header, beside its sample; undefined if they can't be cut out here. */
export async function stageTail(file: File, staged: Staged, csv: unknown): Promise<Staged | undefined> {
  if (!staged.ours || compressionOf(file.name) !== undefined) return undefined;
  // The sample itself has them.
  if (staged.whole && file.size <= TAIL_BYTES) return { ...staged, ours: false };
  const head = await headOf(file, shapeOf(csv));
  const from = Math.max(head, file.size - TAIL_BYTES - (file.size % 2));
  const tail = new Uint8Array(await file.slice(from).arrayBuffer());
  const [a, b] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const isLittle = a === 0xff && b === 0xfe;
  const end = tail.indexOf(0x0a);
  const start = from === head ? 0 : end < 0 ? tail.length : end + (isLittle ? 2 : 1);
  const key = staged.key.replace(/\.txt$/, ".tail.txt");
  left.value = [...left.value, { key, seen: Date.now() }];
  await uploadOnce(key, new Blob([file.slice(0, head), tail.slice(start)]), () => undefined);
  return { ...staged, key, whole: false };
}

/** Deletes a sample. A failure is left to the next sweep. */
export async function release(staged: Staged): Promise<void> {
  if (staged.ours) await remove(staged.key);
}

async function remove(key: string): Promise<void> {
  try {
    await ask(api.DELETE("/api/lake", { params: { query: { key } }, keepalive: true }));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "object_not_found")) return;
  }
  left.value = left.value.filter((one) => one.key !== key);
}

/** Sends heartbeats for a sample; returns the stop function. */
export function keepAlive(staged: Staged): () => void {
  const timer = setInterval(() => {
    left.value = left.value.map((one) => (one.key === staged.key ? { ...one, seen: Date.now() } : one));
  }, SEEN_MS);
  const leave = () => void release(staged);
  window.addEventListener("pagehide", leave);
  return () => {
    clearInterval(timer);
    window.removeEventListener("pagehide", leave);
  };
}

/** Deletes samples of closed pages of this browser. */
export function sweep(): void {
  const now = Date.now();
  for (const { key, seen } of left.value) if (now - seen > SILENT_MS) void remove(key);
}
