import { useInfiniteQuery } from "@tanstack/preact-query";
import { Download, FolderPlus, FolderUp, Move, Trash2, Upload } from "lucide-preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Link, useLocation, useSearch } from "wouter-preact";
import { Button } from "../../components/button";
import { Page } from "../../components/page";
import { Empty, Failed, Skeleton } from "../../components/states";
import { toast } from "../../components/toasts";
import { count, counted } from "../../format/number";
import { isFromList, routes } from "../../browser/routes";
import { saveFrom } from "../../browser/save";
import { useShortcuts } from "../../browser/shortcuts";
import { uploads } from "../../uploads";
import { reportRefused, withoutForeign } from "../../uploads/accept";
import { chosenFiles as chosenFiles, skippedMessage, type CollectedFiles } from "../../uploads/files";
import { folderOf, joinKey, nameOf } from "../../uploads/keys";
import { kept, EMPTY_SELECTION, type Selection } from "./selection";
import { Crumbs } from "./crumbs";
import { DeleteDialog } from "../../uploads/delete-dialog";
import type { Entry } from "../../uploads/entries";
import { FolderDialog, MoveDialog } from "./dialogs";
import { isSource } from "../../uploads/source-names";
import { useDropHandler } from "../../uploads/use-drop";
import { entriesOf, levelQuery, matches } from "./level";
import { List, targetOf } from "./list";
import { Peek } from "./peek";
import { strayAmong, StrayDialog } from "./stray";
import "./lake.css";

/** Maximum number of downloads at once; browsers ask about each. */
const DOWNLOADS_MAX = 20;

function lineOf(text: string | null): number | undefined {
  const line = Number(text);
  return Number.isSafeInteger(line) && line > 0 ? line : undefined;
}

/** File browser of the lake. */
export default function LakeView() {
  const query = new URLSearchParams(useSearch());
  const given = query.get("prefix") ?? "";
  const file = query.get("file") ?? undefined;
  const prefix = given === "" && file ? folderOf(file) : given === "" || given.endsWith("/") ? given : `${given}/`;
  const [, go] = useLocation();
  const here = prefix === "" ? "the lake's root" : prefix;
  const [stray, setStray] = useState<{ folder: string; files: File[] }>();
  const add = useCallback(
    async (taken: CollectedFiles) => {
      const { found } = taken;
      const left = skippedMessage(taken);
      if (left !== undefined) toast.failed("Some files weren't added", new Error(left));
      if (found.length === 0) return toast.done("No files found in the dropped items");
      const wanted = found.map(({ file: body, path }) => ({ key: joinKey(prefix, path), file: body }));
      // Other files may be kept here, but not under the name of a CSV, which a table would read.
      const { kept, problems } = await withoutForeign(wanted, ({ file: body, key }) =>
        isSource(nameOf(key)) ? body : undefined,
      );
      reportRefused(problems, kept.length > 0);
      const folder = await strayAmong(kept.map(({ key }) => key));
      if (folder !== undefined) return setStray({ folder, files: kept.map(({ file: body }) => body) });
      if (kept.length > 0) uploads.add(kept);
    },
    [prefix],
  );
  const take = useCallback((taken: CollectedFiles) => void add(taken), [add]);
  // Back then leads to where the file was opened, and doesn't open it again.
  const closeFile = () => (isFromList() ? history.back() : go(routes.lake(prefix), { replace: true }));
  useDropHandler(`to ${here}`, take);
  return (
    <Page title={prefix === "" ? "Lake" : `${nameOf(prefix)} · Lake`} full>
      <div class="lake">
        <Level key={prefix} prefix={prefix} onAdd={take} />
      </div>
      {stray && <StrayDialog {...stray} onClose={() => setStray(undefined)} />}
      {file && <Peek key={file} file={file} line={lineOf(query.get("line"))} onClose={closeFile} />}
    </Page>
  );
}

type OpenDialog = "move" | "delete" | "folder";

function Level({ prefix, onAdd }: { prefix: string; onAdd: (taken: CollectedFiles) => void }) {
  const [, go] = useLocation();
  const listed = useInfiniteQuery(levelQuery(prefix));
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage } = listed;
  const [filter, setFilter] = useState("");
  const [dialog, setDialog] = useState<OpenDialog>();
  const [choice, setChoice] = useState<Selection>(EMPTY_SELECTION);
  const field = useRef<HTMLInputElement>(null);
  const all = useMemo(() => entriesOf(data?.pages ?? []), [data]);
  const entries = useMemo(() => (filter === "" ? all : all.filter(({ name }) => matches(name, filter))), [all, filter]);
  const order = useMemo(() => entries.map(({ key }) => key), [entries]);
  useEffect(() => setChoice((now) => kept(now, order)), [order]);
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  // A filter needs the complete level.
  useEffect(() => {
    if (filter !== "") more();
  }, [filter, more]);
  const skipped = data?.pages.flatMap((page) => page.skipped ?? []) ?? [];
  const meant = entries.filter(({ key }) => choice.chosen.has(key));
  const up = () => prefix !== "" && go(routes.lake(folderOf(prefix)));
  const remove = () => meant.length > 0 && setDialog("delete");
  useShortcuts([
    { keys: "/", does: "Filter by name", run: () => field.current?.focus() },
    { keys: "Enter", does: "Open the folder or preview the file" },
    { keys: "Backspace", does: "Go to the parent folder" },
    { keys: "Delete", does: "Delete the selection" },
    { keys: "mod+a", does: "Select all" },
  ]);
  const open = (entry: Entry) => {
    const { href, ...options } = targetOf(prefix, entry);
    go(href, options);
  };
  const close = () => setDialog(undefined);
  return (
    <>
      <header class="lake-bar">
        <h1 class="grow">
          <Crumbs prefix={prefix} />
        </h1>
        <Adding onAdd={onAdd} onFolder={() => setDialog("folder")} />
      </header>
      <div class="lake-tools">
        <input
          ref={field}
          class="input"
          type="search"
          aria-label="Filter by name"
          placeholder="Filter by name"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
        <span class="secondary lake-count" role="status">
          {data && selectionSummary(entries.length, all.length, filter, hasNextPage, meant.length)}
        </span>
        <span class="grow" />
        <Acting entries={meant} onMove={() => setDialog("move")} onDelete={remove} />
      </div>
      {skipped.length > 0 && (
        <p class="secondary">
          {counted(skipped.length, "file")} can't be read because the name isn't a valid key: <code>{skipped[0]}</code>
        </p>
      )}
      {error && !data ? (
        <Failed title="Couldn't load the folder" error={error} onRetry={() => void listed.refetch()} />
      ) : !data ? (
        <div class="lake-loading">
          <Skeleton lines={12} />
        </div>
      ) : entries.length === 0 && !hasNextPage ? (
        <Nothing prefix={prefix} filter={filter} onClear={() => setFilter("")} />
      ) : (
        <List
          prefix={prefix}
          entries={entries}
          choice={choice}
          more={hasNextPage}
          onChoice={setChoice}
          onMore={more}
          onOpen={open}
          onUp={up}
          onDelete={remove}
        />
      )}
      {dialog === "delete" && <DeleteDialog entries={meant} onClose={close} />}
      {dialog === "move" && <MoveDialog entries={meant} prefix={prefix} onClose={close} />}
      {dialog === "folder" && <FolderDialog prefix={prefix} onClose={close} onOpen={(to) => go(routes.lake(to))} />}
    </>
  );
}

function selectionSummary(shown: number, all: number, filter: string, more: boolean, chosen: number): string {
  if (chosen > 0) return `${count(chosen)} selected`;
  const known = `${counted(all, "entry", "entries")}${more ? " and more" : ""}`;
  return filter === "" ? known : `${count(shown)} of ${known}`;
}

function Nothing({ prefix, filter, onClear }: { prefix: string; filter: string; onClear: () => void }) {
  if (filter !== "")
    return <Empty title={`No names contain “${filter}”`} actions={<Button onClick={onClear}>Clear filter</Button>} />;
  return (
    <Empty
      title={prefix === "" ? "The lake is empty" : "This folder is empty"}
      actions={
        <Link class="button" href={routes.fromCsv()}>
          New pipeline from CSV
        </Link>
      }
    >
      Drop files or folders here, or choose Upload.
    </Empty>
  );
}

/** Upload buttons. */
function Adding({ onAdd, onFolder }: { onAdd: (taken: CollectedFiles) => void; onFolder: () => void }) {
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const took = (event: { currentTarget: HTMLInputElement }) => {
    onAdd(chosenFiles(event.currentTarget.files ?? []));
    event.currentTarget.value = "";
  };
  useShortcuts([{ keys: "u", does: "Upload files", run: () => files.current?.click() }]);
  return (
    <div class="row wrap">
      <Button icon={<FolderPlus />} onClick={onFolder}>
        New folder
      </Button>
      <Button icon={<FolderUp />} onClick={() => folder.current?.click()}>
        Upload folder
      </Button>
      <Button variant="primary" icon={<Upload />} onClick={() => files.current?.click()}>
        Upload
      </Button>
      <input ref={files} type="file" multiple hidden aria-label="Files to upload" onChange={took} />
      <input
        ref={folder}
        type="file"
        {...{ webkitdirectory: true }}
        hidden
        aria-label="Folder to upload"
        onChange={took}
      />
    </div>
  );
}

/** Actions on the selection; keeps its height without one. */
function Acting({ entries, onMove, onDelete }: { entries: Entry[]; onMove: () => void; onDelete: () => void }) {
  const none = entries.length === 0;
  const files = entries.filter(({ kind }) => kind === "file");
  return (
    <div class="row">
      <Button variant="quiet" icon={<Move />} disabled={none} onClick={onMove}>
        Move
      </Button>
      <Button
        variant="quiet"
        icon={<Download />}
        disabled={none || files.length !== entries.length || files.length > DOWNLOADS_MAX}
        title={files.length > DOWNLOADS_MAX ? `At most ${DOWNLOADS_MAX} files at once` : undefined}
        onClick={() => files.forEach(download)}
      >
        Download
      </Button>
      <Button variant="quiet" icon={<Trash2 />} disabled={none} onClick={onDelete}>
        Delete
      </Button>
    </div>
  );
}

function download({ key, name }: Entry): void {
  saveFrom(`/api/lake/object?key=${encodeURIComponent(key)}`, name);
}
