/**
 * Samples in the lake, for as long as a proposal is looked at.
 *
 * Invariant: what was put there is remembered before it is sent, until it is deleted; what a closed page left is deleted by
 * the next that opens.
 */
import { api, ask, sendRaw } from "../../api/client";
import { newDraft } from "../../api/drafts";
import { ApiFailure } from "../../api/failure";
import { kept } from "../../browser/kept";
import { uploadOnce } from "../../uploads/once";
import { nameOf, pipelineOf } from "../../uploads/keys";
import { sampleOf, sampleOfStream, type Sample } from "./sample";

/** A page that is open says so this often; one that is silent for long is gone. */
const SEEN_MS = 30_000;
const SILENT_MS = 5 * 60_000;

/** Larger files aren't blank, or are for the service to judge. */
const BLANK_BYTES_MAX = 64 << 10;

interface Left {
  key: string;
  seen: number;
}

const isLeft = (value: unknown): value is Left[] =>
  Array.isArray(value) &&
  value.every((one) => typeof one === "object" && one !== null && "key" in one && "seen" in one);

const left = kept<Left[]>("samples", [], isLeft);

/** What is proposed from: a file here, or one in the lake. */
export type Source = { kind: "files"; files: File[] } | { kind: "lake"; key: string };

/** Where the service can look at a source. */
export interface Staged {
  slug: string;
  key: string;
  /** All of the source lies there. */
  whole: boolean;
  /** To be deleted afterwards. */
  ours: boolean;
}

/** A name without its endings. */
export const stemOf = (name: string): string =>
  name.replace(/\.(gz|zst)$/i, "").replace(/\.(csv|tsv|tab|txt|psv|dat)$/i, "") || "data";

/** Puts what is to be looked at where the service can. */
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
  if (/\.zst$/i.test(key)) return { body: await response.blob(), whole: true, ending: ".txt.zst" };
  return await sampleOfStream(response.body, key);
}

const noRows = () =>
  new ApiFailure(422, "no_rows", "the file has no rows; choose a file with a header and at least one row");

/** Whether nothing but blanks and line ends is in a sample; packed ones are looked at by the service. */
async function isBlank({ body, whole, ending }: Sample): Promise<boolean> {
  if (body.size === 0) return true;
  if (!whole || ending !== ".txt" || body.size > BLANK_BYTES_MAX) return false;
  return /^[\s\ufeff]*$/.test(await body.text());
}

async function put(sample: Sample, name: string, onSent: (sent: number, total: number) => void): Promise<Staged> {
  if (await isBlank(sample)) throw noRows();
  const slug = newDraft();
  // The table is named after it: letters without their marks, and nothing that no key may have.
  const stem = stemOf(name)
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/[^\p{L}\p{N} ._-]/gu, "_")
    .slice(0, 100);
  // A dot-file is news to no worker that watches a folder: no run starts for it.
  const key = `pipelines/${slug}/.${stem}${sample.ending}`;
  left.value = [...left.value, { key, seen: Date.now() }];
  await uploadOnce(key, sample.body, (sent) => onSent(sent, sample.body.size));
  return { slug, key, whole: sample.whole, ours: true };
}

/** Deletes what was staged. What fails is left to the next sweep. */
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

/** Says that this page still needs what it staged. @returns how to stop */
export function holding(staged: Staged): () => void {
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

/** Deletes what pages of this browser left that are gone. */
export function sweep(): void {
  const now = Date.now();
  for (const { key, seen } of left.value) if (now - seen > SILENT_MS) void remove(key);
}
