import { useQuery } from "@tanstack/preact-query";
import { FileUp } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { loadConfig, saveConfig, type StoredMapping } from "../api/config";
import { isPaused, pausesQuery } from "../api/pauses";
import { pipelinesQuery, statusQuery, tablesQuery } from "../api/queries";
import { UPLOAD_BYTES_MAX } from "../api/rules";
import type { TableStatus } from "../api/types";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { SelectField } from "../components/field";
import { Failed, Note, Skeleton } from "../components/states";
import { toast } from "../components/toasts";
import { bytes, counted } from "../format/number";
import { routes } from "../browser/routes";
import { droppedFiles } from "../uploads/dropped";
import { deleteAfter, earlierUploads } from "../uploads/earlier";
import { inPipeline, nameOf, namesOf } from "../uploads/keys";
import { nextRunText } from "../uploads/outcome";
import { csvOf, sizeProblem, shapeOf } from "../uploads/parts";
import { globsToAdd, likelyTable, uploadKeyOf } from "../uploads/upload-key";
import { partsToUpload, sendParts, type KeyedPart } from "../uploads/send";
import { defaultChoice, matchesOf, resolved, type Choice, type Match, type Resolved } from "../uploads/stored";
import { take } from "../uploads/accept";
import { dragged, useDrops, useDropHandler } from "../uploads/use-drop";
import { withMapping } from "../tables/changes";
import { OwnFormats, tablesByHeader, unfitFiles, unfitFilesOf } from "../tables/own-format";
import { copiesIn } from "../tables/copies";
import { AdaptToUpload } from "../tables/adapt";
import { checkUpload, UploadForecast, type Fix } from "../tables/upload-check";
import { UploadMatches } from "./upload-matches";
import { groupsOf, offerFiles, stepText, uploadRequest, type UploadRequest } from "./upload-request";

const NAMES_SHOWN = 5;
/** Values of the selects that aren't names. */
const NEW = "";
const CHOOSE = "?";

/** Takes files that are dropped anywhere, and asks where they go. */
export function Uploader({ here }: { here: string | undefined }) {
  useDrops();
  useDropHandler(
    here ? `to add data to ${here}` : "to add data",
    (found) => void take(found).then((files) => offerFiles(here, files)),
  );
  const request = uploadRequest.value;
  const words = dragged.value;
  return (
    <>
      {words !== undefined && (
        <div class="drop-over" role="status">
          <FileUp aria-hidden="true" />
          Drop {words}
        </div>
      )}
      {request && (
        <UploadDialog
          key={[request.steps?.at, ...request.files.map(({ name }) => name)].join("/")}
          request={request}
          onClose={() => (uploadRequest.value = undefined)}
        />
      )}
    </>
  );
}

interface Props {
  request: UploadRequest;
  onClose: () => void;
}

/** Asks for pipeline and table, and uploads the files of one table to where it reads them. */
function UploadDialog({ request, onClose }: Props) {
  const { slug: given, files: offered, steps } = request;
  const [, go] = useLocation();
  const listed = useQuery(pipelinesQuery());
  const [chosen, setChosen] = useState(given ?? NEW);
  const [table, setTable] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [earlier, setEarlier] = useState<{ plan: UploadPlan; keys: string[] }>();
  const [choices, setChoices] = useState<ReadonlyMap<File, Choice>>(new Map());
  const [fixing, setFixing] = useState(false);
  const [fix, setFix] = useState<Fix>();
  const status = useQuery({ ...statusQuery(chosen), enabled: chosen !== NEW });
  const pipelines = (listed.data?.pipelines ?? []).filter(({ config }) => config !== "missing");
  const stated = status.data?.tables;
  const tables = useMemo(() => (stated ?? []).filter(({ globs }) => globs.length > 0), [stated]);
  const named = useMemo(
    () => new Map(offered.map((file) => [file, likelyTable(tables, file.name)?.name])),
    [offered, tables],
  );
  const unnamed = offered.filter((file) => named.get(file) === undefined);
  const byHeader = useQuery({
    queryKey: ["lake", "tables", chosen, unnamed.map((file) => file.name)],
    queryFn: () => tablesByHeader(chosen, unnamed),
    enabled: steps === undefined && unnamed.length > 0 && tables.length > 1,
    staleTime: 0,
    gcTime: 0,
  });
  const tableOf = (file: File) => {
    const likely = named.get(file) ?? byHeader.data?.get(file);
    return tables.find((one) => one.name === likely)?.name;
  };
  const groups = steps?.groups ?? groupsOf(offered, byHeader.isLoading ? () => undefined : tableOf);
  const { at, toPreview } = steps ?? { at: 0, toPreview: [] as File[] };
  const { files, table: fitting } = groups[at] ?? { files: [], table: undefined };
  const next = groups[at + 1];
  const name = table ?? tables.find((one) => one.name === fitting)?.name ?? (tables.length === 0 ? NEW : CHOOSE);
  const target = tables.find((one) => one.name === name);
  // The hash of a key tells files apart by their names only.
  const batch = [at, ...files.map((file) => file.name)];
  const refused = files
    .map(({ name: file, size }) => (size === 0 ? `${file} is empty: it has no rows` : sizeProblem(file, size)))
    .find((problem) => problem !== undefined);
  const stored = useQuery({
    queryKey: ["lake", "matches", chosen, target?.globs, batch],
    queryFn: () =>
      matchesOf(
        chosen,
        target?.globs ?? [],
        files,
        tables.filter((one) => one !== target),
      ),
    enabled: target !== undefined,
    staleTime: 0,
    gcTime: 0,
  });
  const unfit = useQuery({
    queryKey: ["lake", "unfit", chosen, target?.name, target?.globs, batch],
    queryFn: () => unfitFilesOf(chosen, target?.name ?? "", target?.globs ?? [], files),
    enabled: target !== undefined,
    staleTime: 0,
    gcTime: 0,
  });
  const odd = unfit.data?.odd ?? [];
  const formats = useQuery({
    queryKey: ["lake", "formats", odd.map((file) => file.name)],
    queryFn: async () => (await OwnFormats.of(odd)) ?? null,
    enabled: odd.length > 0,
    staleTime: Infinity,
    gcTime: 0,
  });
  // Without the listing, files that exist are asked about when they are sent.
  const matches = (target && stored.data) ?? [];
  const choiceOf = (match: Match): Choice => choices.get(match.file) ?? defaultChoice(match);
  const wanted = resolved(files, matches, choiceOf, UPLOAD_BYTES_MAX);
  const placeOf = (file: string): string => {
    const place = wanted.places.get(files.find((one) => one.name === file) as File);
    if (place !== undefined) return inPipeline(chosen, place);
    return uploadKeyOf(target ? globsWith(target, files) : [], file) ?? file;
  };
  /** The mapping with the formats of the files. */
  const withFormats = (mapping: StoredMapping) => {
    const parts = files.map((file) => ({ of: file.name, key: `pipelines/${chosen}/${placeOf(file.name)}` }));
    return formats.data?.appliedTo(mapping, chosen, parts) ?? mapping;
  };
  const read = wanted.files.filter((file) => !unfit.data?.foreign.includes(file));
  const replaced = [...wanted.places.values(), ...wanted.deleted].map((key) => inPipeline(chosen, key));
  const check = useQuery({
    queryKey: [
      "lake",
      "check",
      chosen,
      target?.name,
      target?.globs,
      batch,
      read.map((file) => file.name),
      replaced,
      fix?.words,
    ],
    queryFn: async () =>
      (await checkUpload(chosen, target?.name ?? "", placeOf, read, replaced, (mapping) => {
        const given = withFormats(mapping);
        return fix?.apply(given) ?? given;
      })) ?? null,
    enabled:
      target !== undefined && refused === undefined && unfit.isSuccess && (odd.length === 0 || formats.isSuccess),
    staleTime: Infinity,
    gcTime: 0,
  });
  // Another table may have the columns of files that this one doesn't fit.
  const isUnfit = (unfit.data?.foreign.length ?? 0) > 0 || typeof check.data?.checked.failure === "string";
  const fits = useQuery({
    queryKey: ["lake", "fits", chosen, batch],
    queryFn: () => tablesByHeader(chosen, files),
    enabled: target !== undefined && isUnfit && tables.length > 1,
    staleTime: 0,
    gcTime: 0,
  });
  const [fit, ...otherFits] = new Set(isUnfit ? fits.data?.values() : []);
  const { data: known } = useQuery({ ...tablesQuery(chosen), enabled: target !== undefined });
  const stores = known?.tables.find((one) => one.name === target?.name);
  const ignored = stores?.extra_columns ?? [];
  const [oddNames, foreignNames] = [unfit.data?.odd, unfit.data?.foreign].map((some = []) =>
    some.map((file) => file.name),
  );
  const others = check.data?.firstRows.filter(({ file }) => !matches.some((match) => match.file.name === file)) ?? [];
  const copies = useQuery({
    queryKey: ["lake", "copies", chosen, target?.name, others],
    queryFn: ({ signal }) => (stores ? copiesIn(chosen, stores, others, signal) : []),
    enabled: stores !== undefined && others.length > 0 && stored.isSuccess,
    staleTime: Infinity,
    gcTime: 0,
  });
  const problem = choiceProblem(matches, choiceOf, wanted);
  const ready =
    refused === undefined &&
    !byHeader.isLoading &&
    name !== CHOOSE &&
    (chosen === NEW || status.data !== undefined) &&
    (target === undefined || (!stored.isPending && problem === undefined));

  /** Goes on to the files of the next table, after the last to the preview of those for new tables. */
  const proceed = (previewed: readonly File[]) => {
    // Canceled while the upload was prepared.
    if (uploadRequest.value !== request) return;
    if (next) {
      uploadRequest.value = {
        slug: chosen,
        files: next.files,
        steps: { groups, at: at + 1, toPreview: previewed },
      };
      return;
    }
    onClose();
    if (previewed.length === 0) return;
    droppedFiles.value = [...previewed];
    go(`~${routes.fromCsv({ pipeline: chosen })}`);
  };
  const upload = async () => {
    if (!target) return proceed([...toPreview, ...files]);
    setBusy(true);
    try {
      const plan = await planUpload(chosen, target, wanted, formats.data, fix);
      const keys = await earlierUploads(plan.parts);
      if (keys.length === 0) return await send(plan);
      setEarlier({ plan, keys });
    } catch (error) {
      toast.failed("Couldn't upload the files", error);
    }
    setBusy(false);
  };
  /** `replaced`: objects that the upload takes the place of. */
  const send = async ({ parts, deleted, saveGlobs }: UploadPlan, replaced?: string[]) => {
    setBusy(true);
    try {
      await saveGlobs();
      const sent = sendParts(parts, replaced ? true : undefined);
      const gone = [...new Set([...deleted, ...(replaced ?? [])])];
      if (gone.length > 0) void deleteAfter(sent, gone);
      proceed(toPreview);
    } catch (error) {
      toast.failed("Couldn't upload the files", error);
      setBusy(false);
    }
  };
  const follows = next !== undefined || toPreview.length > 0;
  const cancel = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      {follows && (
        <Button disabled={busy} onClick={() => proceed(toPreview)}>
          Skip
        </Button>
      )}
    </>
  );
  if (fixing && target)
    return (
      <AdaptToUpload
        slug={chosen}
        table={target.name}
        files={read}
        placeOf={placeOf}
        given={withFormats}
        replaced={check.data?.replaced ?? { rows: 0, rows_rejected: 0 }}
        onClose={() => setFixing(false)}
        onFixed={(found) => {
          setFix(found);
          setFixing(false);
        }}
      />
    );
  const step = groups.length > 1 && <p class="secondary">{stepText({ groups, at, toPreview }, target?.name)}</p>;
  if (earlier) {
    const { plan, keys } = earlier;
    return (
      <Dialog
        title={`Replace ${counted(new Set(plan.parts.map(({ of }) => of)).size, "file")}?`}
        onClose={onClose}
        actions={
          <>
            {cancel}
            <Button disabled={busy} onClick={() => void send(plan)}>
              Keep both
            </Button>
            <Button variant="primary" busy={busy} onClick={() => void send(plan, keys)}>
              Replace
            </Button>
          </>
        }
      >
        {step}
        <p>
          An earlier upload is in the lake as <code>{namesOf(keys)}</code>. Replace deletes it after the upload. If both
          are kept, the table has the rows of both.
        </p>
      </Dialog>
    );
  }
  return (
    <Dialog
      title={files.length === 1 ? `Add ${files[0]?.name ?? ""}` : `Add ${counted(files.length, "file")}`}
      onClose={onClose}
      actions={
        <>
          {cancel}
          <Button variant="primary" busy={busy} disabled={!ready} onClick={() => void upload()}>
            {name !== NEW ? "Upload" : next ? "Continue" : "Preview"}
          </Button>
        </>
      }
    >
      {step}
      <FileNames files={files} />
      {refused !== undefined && <Note tone="bad">{refused}.</Note>}
      {given === undefined && (
        <SelectField
          label="Pipeline"
          value={chosen}
          onChange={(event) => {
            setChosen(event.currentTarget.value);
            setTable(undefined);
            setFix(undefined);
          }}
        >
          <option value={NEW}>New pipeline</option>
          {pipelines.map(({ slug, title }) => (
            <option key={slug} value={slug}>
              {title || slug}
            </option>
          ))}
        </SelectField>
      )}
      {chosen !== NEW &&
        (status.error && !status.data ? (
          <Failed title="Couldn't load the tables" error={status.error} onRetry={() => void status.refetch()} />
        ) : !status.data ? (
          <Skeleton lines={2} label="Loading the tables" />
        ) : (
          <SelectField
            label="Table"
            value={name}
            onChange={(event) => {
              setTable(event.currentTarget.value);
              setFix(undefined);
            }}
          >
            {name === CHOOSE && <option value={CHOOSE}>Choose a table</option>}
            {tables.map((one) => (
              <option key={one.name} value={one.name}>
                {one.name}
              </option>
            ))}
            <option value={NEW}>New table</option>
          </SelectField>
        ))}
      {target ? (
        <UploadDestination
          slug={chosen}
          table={target}
          files={files}
          autoRun={pipelines.find(({ slug }) => slug === chosen)?.auto_run !== false}
        >
          {stored.isPending && <Skeleton lines={2} label="Looking for files that exist" />}
          <UploadMatches
            table={target.name}
            matches={matches}
            choiceOf={choiceOf}
            onChoice={(some, choice) => {
              setChoices((before) => new Map([...before, ...some.map(({ file }) => [file, choice] as const)]));
              // It is about the files where they would have gone.
              setFix(undefined);
            }}
          />
          {problem && <p class="secondary">{problem}</p>}
          {foreignNames !== undefined && foreignNames.length > 0 && (
            <Note tone="warn">
              {foreignNames.join(", ")} {foreignNames.length === 1 ? "has" : "have"} none of the columns of{" "}
              {target.name}, so a run would fail. To load {foreignNames.length === 1 ? "it" : "them"}, choose another
              table, or New table.
            </Note>
          )}
          {oddNames !== undefined && oddNames.length > 0 && (
            <Note>
              {oddNames.join(", ")} {oddNames.length === 1 ? "has" : "have"} the columns of {target.name} in another
              format. {oddNames.length === 1 ? "It is read in its own." : "Each is read in its own."}
              {formats.data && (
                <ul>
                  {odd.map((file) => (
                    <li key={file.name}>
                      {oddNames.length > 1 && `${file.name}: `}
                      {formats.data?.textOf(file)}
                    </li>
                  ))}
                </ul>
              )}
            </Note>
          )}
          {fit !== undefined && otherFits.length === 0 && fit !== target.name && (
            <Note>
              {files.length === 1 ? "Its columns are" : "Their columns are"} those of {fit}.
            </Note>
          )}
          {fix && (
            <Note>
              Uploading changes the config of {target.name}: {fix.words.join("; ")}.
            </Note>
          )}
          {check.data && (
            <UploadForecast
              table={target}
              check={check.data}
              ignored={ignored.map((column) => column.name)}
              copies={copies.data ?? []}
              // Parts of a large file have names that no format of its own would be for.
              onFix={files.some(({ size }) => size > UPLOAD_BYTES_MAX) ? undefined : () => setFixing(true)}
            />
          )}
        </UploadDestination>
      ) : (
        name === NEW && (
          <p class="secondary">
            {next ? "After the other files" : "Next"} you see the data, the detected format and the columns. Nothing is
            created yet.
          </p>
        )
      )}
    </Dialog>
  );
}

function FileNames({ files }: { files: File[] }) {
  const size = files.reduce((sum, file) => sum + file.size, 0);
  const names = files.slice(0, NAMES_SHOWN).map((file) => file.name);
  const more = files.length - names.length;
  return (
    <p>
      {files.length > 1 && (
        <>
          {names.join(", ")}
          {more > 0 && ` and ${counted(more, "more file")}`} ·{" "}
        </>
      )}
      <span class="secondary">{bytes(size)}</span>
    </p>
  );
}

/** The destination of the files, and the effect of the upload. */
function UploadDestination({
  slug,
  table,
  files,
  autoRun,
  children,
}: {
  slug: string;
  table: TableStatus;
  files: File[];
  autoRun: boolean;
  children: ComponentChildren;
}) {
  const { data: pauses } = useQuery(pausesQuery());
  const large = files.filter((file) => file.size > UPLOAD_BYTES_MAX);
  const globs = globsWith(table, files);
  const added = globs.slice(table.globs.length);
  const place = uploadKeyOf(globs, files[0]?.name ?? "") ?? "";
  const folder = `pipelines/${slug}/${place.slice(0, place.lastIndexOf("/") + 1)}`;
  return (
    <>
      <p class="secondary">
        Uploads to <code>{folder}</code>, where {table.name} reads {files.length === 1 ? "it" : "them"}.{" "}
        {nextRunText({ paused: isPaused(pauses, slug), autoRun })}
      </p>
      {children}
      {added.length > 0 && (
        <Note>
          {table.name} reads {table.globs.join(", ")} so far. Uploading adds {added.join(", ")} to its config.
        </Note>
      )}
      {large.length > 0 && (
        <Note>
          {large.map(({ name }) => name).join(", ")}: more than {bytes(UPLOAD_BYTES_MAX)}, so it is sent in parts, each
          with the header. To resume an interrupted upload, add the file again.
        </Note>
      )}
    </>
  );
}

/** The table's globs, and those that it needs for the files. */
const globsWith = ({ name: table, globs }: TableStatus, files: readonly File[]): string[] => {
  const unread = files.filter(({ name }) => uploadKeyOf(globs, name) === undefined);
  return [...new Set([...globs, ...unread.flatMap(({ name }) => globsToAdd(table, name))])];
};

/** Why nothing can be uploaded by the choices; undefined if it can. */
function choiceProblem(
  matches: readonly Match[],
  choiceOf: (match: Match) => Choice,
  { files, places }: Resolved,
): string | undefined {
  if (matches.some((match) => choiceOf(match) === undefined))
    return "Choose what to do with each file that looks like another version.";
  if (files.length === 0) return "Nothing is left to upload.";
  const keys = files.flatMap((file) => places.get(file) ?? []);
  const twice = keys.find((key, at) => keys.indexOf(key) !== at);
  return twice && `Two files would replace ${nameOf(twice)}.`;
}

interface UploadPlan {
  parts: KeyedPart[];
  /** Objects to delete after the upload. */
  deleted: string[];
  /** Adds globs to the config if the table doesn't read the files yet. */
  saveGlobs: () => Promise<void>;
}

/** Splits the files into parts. `known`: formats that were looked up before. */
async function planUpload(
  slug: string,
  table: TableStatus,
  { files, places, deleted }: Resolved,
  known: OwnFormats | null | undefined,
  fix: Fix | undefined,
): Promise<UploadPlan> {
  const { config, etag } = await loadConfig(slug);
  const mapping = config.mappings?.find((one) => one.table === table.name);
  if (deleted.length > 0 && mapping?.when_removed === "keep_rows")
    throw new Error(
      `${table.name} keeps the rows of deleted files, so ${namesOf(deleted)} can't be replaced by a file of another kind`,
    );
  const globs = globsWith(table, files);
  const isWider = globs.length > table.globs.length;
  const odd = mapping ? (await unfitFiles(mapping, globs, files)).odd : [];
  const formats = known?.covers(odd) ? known : await OwnFormats.of(odd);
  const csvOfFile = (file: File) => formats?.csvOf(file) ?? csvOf(mapping, uploadKeyOf(globs, file.name) ?? file.name);
  const parts = await partsToUpload(slug, globs, files, (file) => shapeOf(csvOfFile(file)), places);
  const saveGlobs = async () => {
    if (!mapping || !(isWider || formats || fix)) return;
    if (isWider) mapping.files = globs;
    const read = formats ? formats.appliedTo(mapping, slug, parts) : mapping;
    const changed = fix ? fix.apply(read) : read;
    await saveConfig(
      slug,
      withMapping(config, table.name, () => changed),
      etag,
    );
  };
  return { parts, deleted, saveGlobs };
}
