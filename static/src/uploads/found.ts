/** Files that a person chose or dropped, whole folders with all that is in them. */
import { count, counted } from "../format/number";

interface Found {
  file: File;
  /** Below what was dropped: `2024/may.csv`; a single file's name. */
  path: string;
}

/** What is taken of a choice or a drop. */
export interface Taken {
  found: Found[];
  /** Files beyond those; counted up to {@link LEFT_MAX}. */
  left: number;
}

/** Beyond this a browser isn't the tool. */
export const FILES_MAX = 50_000;
/** More than these needn't be counted to be told of. */
const LEFT_MAX = 200_000;
/** What operating systems leave in folders. */
const LEFT_BY_SYSTEMS = new Set(["Thumbs.db", "desktop.ini"]);

const isWanted = (name: string): boolean => !name.startsWith(".") && !LEFT_BY_SYSTEMS.has(name);

/** What an `<input type="file">` holds; a chosen folder gives paths. */
export function chosen(files: Iterable<File>): Taken {
  const taken: Taken = { found: [], left: 0 };
  for (const file of files) {
    const path = file.webkitRelativePath || file.name;
    if (!path.split("/").every(isWanted)) continue;
    if (taken.found.length < FILES_MAX) taken.found.push({ file, path });
    else taken.left += 1;
  }
  return taken;
}

/** What is said where files are left out, and what to do about them. */
export function leftOut({ found, left }: Taken): string | undefined {
  if (left === 0) return undefined;
  const many = left >= LEFT_MAX ? `${count(LEFT_MAX)} or more` : count(left);
  return `added the first ${counted(found.length, "file")} and skipped ${many}; copy those to the lake's bucket directly`;
}

/** What was dropped. The browser forgets it after the event: call this within the handler, before any `await`. */
export function dropped(transfer: DataTransfer): Promise<Taken> {
  const entries = [...transfer.items]
    .filter(({ kind }) => kind === "file")
    .map((item) => item.webkitGetAsEntry())
    .filter((entry) => entry !== null);
  if (entries.length === 0) return Promise.resolve(chosen(transfer.files));
  return walked(entries);
}

export async function walked(entries: FileSystemEntry[]): Promise<Taken> {
  const taken: Taken = { found: [], left: 0 };
  const todo = entries.toReversed();
  for (let entry = todo.pop(); entry && taken.left < LEFT_MAX; entry = todo.pop()) {
    if (!isWanted(entry.name)) continue;
    const path = entry.fullPath.replace(/^\//, "");
    if (!entry.isFile) {
      // One by one: a folder may have more than a call takes arguments.
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
  // A reader gives at most a hundred at a time, and then none.
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return all;
    for (const one of some) all.push(one);
  }
}

/** Whether something is dragged that has files, and no text or link. */
export const hasFiles = (transfer: DataTransfer | null): boolean => transfer?.types.includes("Files") ?? false;
