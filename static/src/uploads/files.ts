/** Collects chosen or dropped files, including those in folders. */
import { count, counted } from "../format/number";

interface Found {
  file: File;
  /** Path relative to the drop: `2024/may.csv`; the name of a single file. */
  path: string;
}

/** Result of a choice or drop. */
export interface CollectedFiles {
  found: Found[];
  /** Number of skipped files, counted up to {@link COUNTED_MAX}. */
  left: number;
}

/** Maximum number of files per drop. */
export const FILES_MAX = 50_000;
/** Counting stops here. */
const COUNTED_MAX = 200_000;
/** System files to ignore. */
const SYSTEM_FILES = new Set(["Thumbs.db", "desktop.ini"]);

const isWanted = (name: string): boolean => !name.startsWith(".") && !SYSTEM_FILES.has(name);

/** Files of an `<input type="file">`; chosen folders include paths. */
export function chosenFiles(files: Iterable<File>): CollectedFiles {
  const taken: CollectedFiles = { found: [], left: 0 };
  for (const file of files) {
    const path = file.webkitRelativePath || file.name;
    if (!path.split("/").every(isWanted)) continue;
    if (taken.found.length < FILES_MAX) taken.found.push({ file, path });
    else taken.left += 1;
  }
  return taken;
}

/** Message about skipped files. */
export function skippedMessage({ found, left }: CollectedFiles): string | undefined {
  if (left === 0) return undefined;
  const many = left >= COUNTED_MAX ? `${count(COUNTED_MAX)} or more` : count(left);
  return `added the first ${counted(found.length, "file")} and skipped ${many}; copy those to the lake's bucket directly`;
}

/** Files of a drop. The browser clears them after the event: call it within the handler, before any `await`. */
export function filesOfDrop(transfer: DataTransfer): Promise<CollectedFiles> {
  const entries = [...transfer.items]
    .filter(({ kind }) => kind === "file")
    .map((item) => item.webkitGetAsEntry())
    .filter((entry) => entry !== null);
  if (entries.length === 0) return Promise.resolve(chosenFiles(transfer.files));
  return walked(entries);
}

export async function walked(entries: FileSystemEntry[]): Promise<CollectedFiles> {
  const taken: CollectedFiles = { found: [], left: 0 };
  const todo = entries.toReversed();
  for (let entry = todo.pop(); entry && taken.left < COUNTED_MAX; entry = todo.pop()) {
    if (!isWanted(entry.name)) continue;
    const path = entry.fullPath.replace(/^\//, "");
    if (!entry.isFile) {
      // One by one: a folder may exceed the argument limit of a call.
      for (const child of (await childrenOf(entry as FileSystemDirectoryEntry)).toReversed()) todo.push(child);
    } else if (taken.found.length < FILES_MAX) {
      taken.found.push({ file: await fileOf(entry as FileSystemFileEntry), path });
    } else taken.left += 1;
  }
  return taken;
}

const fileOf = (entry: FileSystemFileEntry): Promise<File> =>
  new Promise((resolve, reject) => entry.file(resolve, reject));

async function childrenOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  // Readers return up to a hundred entries per call, and then none.
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return all;
    for (const one of some) all.push(one);
  }
}

/** Whether files are dragged, not text or links. */
export const hasFiles = (transfer: DataTransfer | null): boolean => transfer?.types.includes("Files") ?? false;
