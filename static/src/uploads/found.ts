/** Files that a person chose or dropped, whole folders with all that is in them. */

export interface Found {
  file: File;
  /** Below what was dropped: `2024/may.csv`; a single file's name. */
  path: string;
}

/** Beyond this a browser isn't the tool. */
const FILES_MAX = 50_000;
/** What operating systems leave in folders. */
const LEFT_BY_SYSTEMS = new Set(["Thumbs.db", "desktop.ini"]);

const isWanted = (name: string): boolean => !name.startsWith(".") && !LEFT_BY_SYSTEMS.has(name);

/** What an `<input type="file">` holds; a chosen folder gives paths. */
export function chosen(files: Iterable<File>): Found[] {
  const found: Found[] = [];
  for (const file of files) {
    const path = file.webkitRelativePath || file.name;
    if (path.split("/").every(isWanted) && found.length < FILES_MAX) found.push({ file, path });
  }
  return found;
}

/** What was dropped. The browser forgets it after the event: call this within the handler, before any `await`. */
export function dropped(transfer: DataTransfer): Promise<Found[]> {
  const entries = [...transfer.items]
    .filter(({ kind }) => kind === "file")
    .map((item) => item.webkitGetAsEntry())
    .filter((entry) => entry !== null);
  if (entries.length === 0) return Promise.resolve(chosen(transfer.files));
  return walked(entries);
}

async function walked(entries: FileSystemEntry[]): Promise<Found[]> {
  const found: Found[] = [];
  const left = entries.toReversed();
  for (let entry = left.pop(); entry && found.length < FILES_MAX; entry = left.pop()) {
    if (!isWanted(entry.name)) continue;
    const path = entry.fullPath.replace(/^\//, "");
    if (entry.isFile) found.push({ file: await fileOf(entry as FileSystemFileEntry), path });
    else left.push(...(await childrenOf(entry as FileSystemDirectoryEntry)).toReversed());
  }
  return found;
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
    all.push(...some);
  }
}

/** Whether something is dragged that has files, and no text or link. */
export const hasFiles = (transfer: DataTransfer | null): boolean => transfer?.types.includes("Files") ?? false;
