/**
 * Temporary samples in the lake.
 *
 * Invariant: a sample is recorded before its upload until its deletion; leftovers of closed pages are deleted by the
 * next page.
 */
import { api, ask, sendRaw } from "../api/client";
import { newDraft, ofFiles, withFileNames } from "../api/drafts";
import { ApiFailure, asFailure } from "../api/failure";
import type { Inferred } from "../api/types";
import { persisted } from "../browser/persisted";
import { uploadOnce } from "./upload-once";
import { exactGlob } from "./globs";
import { inPipeline, nameOf, pipelineOf } from "./keys";
import { headOf, shapeOf } from "./parts";
import { compressionOf, stemOf } from "./source-names";
import { markOf, SAMPLE_BYTES_MAX, sampleOf, sampleOfStream, type Sample } from "./sample";

/** Heartbeat interval of an open page; silent pages are gone. */
const PAGE_HEARTBEAT_MS = 30_000;
const SILENT_MS = 5 * 60_000;

/** Larger files aren't checked for being blank. */
const BLANK_BYTES_MAX = 64 << 10;

interface LeftoverSample {
  key: string;
  seen: number;
}

const areLeftoverSamples = (value: unknown): value is LeftoverSample[] =>
  Array.isArray(value) &&
  value.every((one) => typeof one === "object" && one !== null && "key" in one && "seen" in one);

const left = persisted<LeftoverSample[]>("samples", [], areLeftoverSamples);

/** Source of a proposal: local files, or a file in the lake. */
export type Source =
  { kind: "files"; files: File[]; formats?: ReadonlyMap<File, string> } | { kind: "lake"; key: string };

/** Location of a sample for the service. */
export interface Staged {
  slug: string;
  key: string;
  /** Name of the file. */
  name: string;
  /** The piece of a large file that it is; undefined: its start. */
  piece?: "middle" | "end";
  /** Whether it is the whole source. */
  whole: boolean;
  /** Bytes of an uncompressed sample: where the rest of the file begins. */
  bytes: number;
  /** Whether this page must delete it. */
  ours: boolean;
  /** The encoding that its byte order mark names. */
  mark?: string | undefined;
}

/** Glob of the staged file within its pipeline. */
export const stagedGlob = ({ slug, key }: Pick<Staged, "slug" | "key">): string => exactGlob(inPipeline(slug, key));

/** Most files that are sampled, and most bytes of their samples together. */
const FILES_MAX = 16;
const FILES_BYTES_MAX = 32 << 20;
/** Files that are sampled whatever their size: the first, the last, and others in between. */
const FILES_MIN = 4;

/** At most `most` of the files, evenly: the first, the last, and others in between. */
function spread(files: readonly File[], most: number): File[] {
  const taken = Math.min(most, files.length);
  const place = (nth: number) => Math.floor((nth * (files.length - 1)) / Math.max(1, taken - 1));
  return Array.from({ length: taken }, (_, nth) => files[place(nth)]).filter((file) => file !== undefined);
}

/** The files that a proposal reads: one of each format at least. */
export function sampled(files: readonly File[], formats: ReadonlyMap<File, string> = new Map()): File[] {
  const bytes = files.reduce((sum, { size }) => sum + Math.min(size, SAMPLE_BYTES_MAX), 0);
  const fitting = Math.floor((FILES_BYTES_MAX * files.length) / Math.max(1, bytes));
  const most = Math.min(FILES_MAX, Math.max(FILES_MIN, fitting));
  const first = spread(files, FILES_MIN);
  const known = new Set(first.map((file) => formats.get(file)));
  const others = files.filter((file) => {
    const isNew = !known.has(formats.get(file));
    known.add(formats.get(file));
    return isNew;
  });
  const chosen = new Set([...first, ...others].slice(0, FILES_MAX));
  for (const file of spread(files, most)) if (chosen.size < most) chosen.add(file);
  return files.filter((file) => chosen.has(file));
}

/** Uploads samples, starting with the first file, and passes each to `onStaged`. */
export async function stage(
  source: Source,
  onStaged: (staged: Staged) => void,
  onSent: (sent: number, total: number) => void,
): Promise<void> {
  if (source.kind === "lake") {
    const { key } = source;
    const slug = pipelineOf(key);
    if (slug) return onStaged({ slug, key, name: nameOf(key), whole: true, bytes: 0, ours: false });
    return onStaged(await put(newDraft(), await sampleOfLake(key), nameOf(key), 0, onSent));
  }
  const files = source.files.filter(({ size }) => size > 0);
  if (source.files.length === 0) throw new Error("no file was selected");
  if (files.length === 0) throw noRows();
  const slug = newDraft();
  const chosen = sampled(files, source.formats);
  const total = chosen.reduce((sum, { size }) => sum + Math.min(size, SAMPLE_BYTES_MAX), 0);
  let before = 0;
  for (const [nth, file] of chosen.entries()) {
    let size = 0;
    const made = await put(slug, await sampleOf(file), file.name, nth, (sent, own) => {
      size = own;
      onSent(before + sent, Math.max(total, before + own));
    });
    before += size;
    onStaged(made);
  }
}

/** Uploads samples of local files, and deletes them after `action`. @throws ApiFailure */
export async function withSamples<T>(files: readonly File[], action: (samples: Staged[]) => Promise<T>): Promise<T> {
  const samples: Staged[] = [];
  const ends: (() => void)[] = [];
  const staged = (one: Staged) => {
    samples.push(one);
    ends.push(keepAlive(one));
  };
  try {
    await stage({ kind: "files", files: [...files] }, staged, () => undefined);
    return await action(samples);
  } finally {
    for (const end of ends) end();
    for (const one of samples) void release(one);
  }
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

async function put(
  slug: string,
  sample: Sample,
  name: string,
  nth: number,
  onSent: (sent: number, total: number) => void,
): Promise<Staged> {
  if (await isBlank(sample)) throw noRows();
  // Names the table: letters without diacritics and without invalid characters.
  const stem = stemOf(name)
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/[^\p{L}\p{N} ._-]/gu, "_")
    .slice(0, 100);
  // Hidden, so that no run starts; under its own name, which columns from file names are about.
  const key = `pipelines/${slug}/.${nth}/${stem}${sample.ending}`;
  left.value = [...left.value, { key, seen: Date.now() }];
  await uploadOnce(key, sample.body, (sent) => onSent(sent, sample.body.size));
  const mark = markOf(new Uint8Array(await sample.body.slice(0, 3).arrayBuffer()));
  return { slug, key, name, whole: sample.whole, bytes: sample.body.size, ours: true, mark };
}

/** Bytes of a piece, and most of its lines: a preview shows all of them. */
const PIECE_BYTES = 256 << 10;
const PIECE_LINES_MAX = 900;
const LF = 0x0a;

/** Uploads a piece of a local file that its sample doesn't have, below the header; undefined if there is none. */
export async function stagePiece(
  file: File,
  staged: Staged,
  piece: "middle" | "end",
  csv: unknown,
): Promise<Staged | undefined> {
  if (!staged.ours || compressionOf(file.name) !== undefined) return undefined;
  const head = await headOf(file, shapeOf(csv));
  // The last rows of a file are shown, even if its sample has them.
  const begin = staged.whole ? head : Math.max(head, staged.bytes);
  if (piece === "middle" && file.size - begin < 3 * PIECE_BYTES) return undefined;
  const wanted = piece === "end" ? file.size - PIECE_BYTES : Math.floor((begin + file.size) / 2);
  // UTF-16 has units of two bytes.
  const from = Math.max(begin, wanted - (wanted % 2) + (begin % 2));
  const bytes = new Uint8Array(await file.slice(from, from + PIECE_BYTES + 2).arrayBuffer());
  const [a, b] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const afterLf = a === 0xff && b === 0xfe ? 2 : 1;
  const ends: number[] = [];
  for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, at + 1)) ends.push(at + afterLf);
  const isEnd = from + bytes.length >= file.size;
  const firsts = from === begin ? [0, ...ends] : ends;
  // The bytes before the first line break and after the last one are parts of rows.
  const last = isEnd ? bytes.length : (ends.at(-1) ?? 0);
  const start = (piece === "end" ? firsts.slice(-PIECE_LINES_MAX)[0] : firsts[0]) ?? last;
  const until = piece === "end" ? last : (firsts[PIECE_LINES_MAX] ?? last);
  const key = staged.key.replace(/\/(?=[^/]*$)/, `-${piece}/`);
  left.value = [...left.value, { key, seen: Date.now() }];
  await uploadOnce(key, new Blob([file.slice(0, head), bytes.slice(start, Math.max(start, until))]), () => undefined);
  return { ...staged, key, piece, whole: false };
}

/** The service's proposal for one table of all samples. @throws ApiFailure */
export async function inferSamples(samples: readonly Staged[]): Promise<Inferred> {
  const [first, ...others] = samples;
  if (!first) throw new Error("nothing is staged");
  const query = { key: first.key, also: others.map(({ key }) => key) };
  try {
    const found = await ask(api.POST("/api/p/{pipeline}/infer", { params: { path: { pipeline: first.slug }, query } }));
    const named = (message: string) => withFileNames(message, samples, first.name);
    return { ...found, files_failed: found.files_failed.map((one) => ({ ...one, message: named(one.message) })) };
  } catch (error) {
    throw ofFiles(asFailure(error), samples, first.name);
  }
}

/** The proposed `csv` object for a sample. */
export const csvOfSample = ({ csv, variants = [] }: Inferred, { key }: Staged): unknown =>
  variants.find(({ keys }) => keys.includes(key))?.csv ?? csv;

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
  }, PAGE_HEARTBEAT_MS);
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
