import { keepPreviousData, useQueries, useQuery } from "@tanstack/preact-query";
import { useEffect, useMemo, useState } from "preact/hooks";
import { api, ask } from "../api/client";
import { loadConfig, saveConfig, type Loaded, type StoredConfig, type StoredMapping } from "../api/config";
import { lineageQuery, statusQuery, tablesQuery } from "../api/queries";
import { asFailure } from "../api/failure";
import type { Inferred, Previewed } from "../api/types";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { Checkbox } from "../components/field";
import { MessageText } from "../components/message-text";
import { Failed, Note, Skeleton } from "../components/states";
import { toast } from "../components/toasts";
import { count, counted } from "../format/number";
import { withRemedy } from "../format/remedies";
import { useFailedFiles } from "../runs/failed-files";
import { inPipeline } from "../uploads/keys";
import { inferSamples, withSamples, type Staged } from "../uploads/staging";
import {
  allowingRejects,
  changesFor,
  leavingOut,
  ownFormats,
  rejectsAllowed,
  tooManyRejects,
  withMapping,
  type MappingChange,
  type MisfitFile,
} from "./changes";
import { checkedOf, ofChecked, readable, rejectedIn, RejectedRows, WouldFail } from "./checked";
import { broken, ConfigProblems, ImpactList, useConfigCheck } from "./impact";
import { withKeys } from "./own-format";
import { previewOf, previewOfSample } from "./preview";
import { RejectsField } from "./rejects";
import { rowsWithout, type Fix, type RowCounts } from "./upload-check";

/** Files that are checked. */
const FILES_MAX = 8;
/** Rejected rows of a file that are shown, and that the changes are proposed from. */
const REJECTS_SHOWN = 10;
const REJECTS_COMPARED = 500;
/** Other files of the table that are looked at for some to check. */
const OTHERS_LISTED = 100;

interface Props {
  slug: string;
  table: string;
  /** Files that the mapping doesn't fit, relative to the pipeline's folder. */
  files: string[];
  /** The run that couldn't read files. */
  job?: string | undefined;
  /** Headers of columns to add. */
  columns?: string[];
  onClose: () => void;
  /** Starts a run. */
  onSaved: () => void;
}

/** Proposes changes of a table's mapping from its files, shows their effect, and saves them. */
export function AdaptDialog({ job, ...props }: Props) {
  const { slug, table, files, onClose } = props;
  const named = useFailedFiles(slug, job);
  const found = [...new Set([...(named ?? []), ...files])];
  // Without a named file, any of the table's files shows what the config doesn't fit.
  const isUnknown = named !== undefined && found.length === 0;
  const lineage = useQuery({ ...lineageQuery(slug, table, { limit: FILES_MAX }), enabled: isUnknown });
  const listed = (lineage.data?.sources ?? []).filter(({ archived }) => !archived).map(({ key }) => key);
  const chosen = isUnknown ? listed : found;
  if (named && chosen.length > 0) return <ComparedFiles {...props} files={chosen} />;
  return (
    <Dialog title={titleOf(table)} onClose={onClose}>
      {isUnknown && lineage.error ? (
        <Failed title="Couldn't find the table's files" error={lineage.error} onRetry={() => void lineage.refetch()} />
      ) : isUnknown && lineage.data ? (
        <Note>The table has no files.</Note>
      ) : (
        <Skeleton lines={8} label="Looking for the files" />
      )}
    </Dialog>
  );
}

/** `columns`: to be added. */
export const titleOf = (table: string, columns: readonly string[] = []): string =>
  columns.length > 0 ? `Add ${columns.join(", ")} to ${table}` : `Adapt ${table} to its files`;

interface UploadProps {
  slug: string;
  table: string;
  files: readonly File[];
  /** Where files of a name go in the pipeline's folder. */
  placeOf: (name: string) => string;
  /** The mapping with the changes that the upload makes anyway. */
  given: (mapping: StoredMapping) => StoredMapping;
  /** Rows of the table's files that the upload replaces. */
  replaced: RowCounts;
  onClose: () => void;
  onFixed: (fix: Fix) => void;
}

/** The same from files that aren't uploaded yet, and saves nothing. */
export function AdaptToUpload({ files, placeOf, ...props }: UploadProps) {
  const { slug, table, onClose } = props;
  const [samples, setSamples] = useState<ReadonlyMap<string, Staged>>();
  useEffect(() => {
    let close: () => void = () => undefined;
    const closed = new Promise<void>((resolve) => (close = resolve));
    const places = (staged: Staged[]) => new Map(staged.map((one) => [`pipelines/${slug}/${placeOf(one.name)}`, one]));
    withSamples(files, (staged) => {
      setSamples(places(staged));
      return closed;
    }).catch((error: unknown) => {
      toast.failed("Couldn't read the files", error);
      onClose();
    });
    return close;
    // The samples are those of the files when the dialog opened.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  if (samples)
    return (
      <ComparedFiles {...props} files={[...samples.keys()].map((key) => inPipeline(slug, key))} samples={samples} />
    );
  return (
    <Dialog title={titleOf(table)} onClose={onClose}>
      <Skeleton lines={8} label="Reading the files" />
    </Dialog>
  );
}

type ComparedProps = Omit<Props, "job" | "onSaved"> &
  Partial<Pick<Props, "onSaved"> & Pick<UploadProps, "given" | "replaced" | "onFixed">> & {
    /** Samples by the keys of their files, if these aren't uploaded yet. */
    samples?: ReadonlyMap<string, Staged>;
  };

function ComparedFiles(props: ComparedProps) {
  const { slug, table, files, columns = [], onClose, samples, given } = props;
  const keys = files.slice(0, FILES_MAX).map((file) => `pipelines/${slug}/${file}`);
  const config = useQuery({
    queryKey: ["adapt", slug, "config"],
    queryFn: async () => {
      const loaded = await loadConfig(slug);
      return given ? { ...loaded, config: withMapping(loaded.config, table, given) } : loaded;
    },
    staleTime: 0,
    gcTime: 0,
    refetchOnWindowFocus: false,
  });
  const [first = "", ...also] = keys;
  const inferred = useQuery({
    queryKey: ["adapt", slug, "infer", keys],
    queryFn: async ({ signal }) => {
      if (samples) {
        const keysOf = (key: string) => keys.filter((one) => samples.get(one)?.key === key);
        return withKeys(await inferSamples([...samples.values()]), keysOf);
      }
      return await ask(
        api.POST("/api/p/{pipeline}/infer", {
          params: { path: { pipeline: slug }, query: { key: first, also } },
          signal,
        }),
      );
    },
    gcTime: 0,
    refetchOnWindowFocus: false,
  });
  const mapping = config.data?.config.mappings?.find((one) => one.table === table);
  const tables = useQuery(tablesQuery(slug));
  const title = titleOf(table, columns);
  // Files that can't be read at all can still be left out.
  const isUnreadable = inferred.error !== null && asFailure(inferred.error).status === 422;
  const error = config.error ?? (isUnreadable ? undefined : inferred.error);
  if (error)
    return (
      <Dialog title={title} onClose={onClose} actions={<Button onClick={onClose}>Close</Button>}>
        <Failed
          title="The files couldn't be compared with the config"
          error={error}
          onRetry={() => void Promise.all([config.refetch(), inferred.refetch()])}
        />
      </Dialog>
    );
  if (!config.data || (!inferred.data && !isUnreadable) || tables.isPending || !mapping)
    return (
      <Dialog title={title} onClose={onClose}>
        {config.data && !mapping ? (
          <Note tone="warn">The config no longer has the table {table}.</Note>
        ) : (
          <Skeleton lines={8} label="Comparing the files with the config" />
        )}
      </Dialog>
    );
  return (
    <Comparison
      {...props}
      title={title}
      keys={keys}
      columns={columns}
      loaded={config.data}
      mapping={mapping}
      inferred={inferred.data}
      ignored={(tables.data?.tables.find(({ name }) => name === table)?.extra_columns ?? []).map(({ name }) => name)}
      unlisted={files.length - keys.length}
    />
  );
}

interface ComparisonProps extends ComparedProps {
  title: string;
  keys: string[];
  columns: string[];
  loaded: Loaded;
  mapping: StoredMapping;
  /** Undefined: none of the files can be read. */
  inferred: Inferred | undefined;
  /** Headers that the table has long left out. */
  ignored: string[];
  /** Number of files that aren't checked. */
  unlisted: number;
}

const nameOf = (key: string): string => key.slice(key.lastIndexOf("/") + 1);

/** The effect of leaving files out. `rows`: as far as they could be counted. */
export function leftOutText(names: readonly string[], rows: number, others: number): string {
  const [stay, them, their] = names.length === 1 ? ["stays", "it", "its"] : ["stay", "them", "their"];
  const lost = rows > 0 ? counted(rows, "row") : `${their} rows`;
  return `${names.join(", ")} ${stay} in the lake, but ${lost} won't be in the table. A run reads the other ${counted(others, "file")}. Sources of the table lists ${them}, to load or delete ${them} later.`;
}

/** The files that the stored config doesn't fit, with the reason. */
export function misfitsOf(
  slug: string,
  keys: readonly string[],
  previews: readonly (Previewed | undefined)[],
): MisfitFile[] {
  return keys.flatMap((key, at) => {
    const { failure, counts, whole = false } = previews[at] ?? {};
    const rejected = counts?.rows_rejected ?? 0;
    if (!failure && rejected === 0) return [];
    const why = failure
      ? `a run would fail: ${failure.message}`
      : `${ofChecked(rejected, counts?.rows_read ?? 0, whole)} would be rejected`;
    return [{ file: inPipeline(slug, key), why }];
  });
}

function Comparison(props: ComparisonProps) {
  const { title, slug, table, keys, columns, loaded, mapping, inferred, ignored, unlisted, onClose, samples } = props;
  const status = useQuery(statusQuery(slug));
  const stored = status.data?.tables.find(({ name }) => name === table);
  const before = usePreviews(slug, table, keys, loaded.config, REJECTS_COMPARED, samples);
  const named = (some: string[]) => some.map((key) => ({ name: nameOf(key) }));
  const now = checkedOf(named(keys), before.previews);
  const filesOfTable = stored ? stored.sources + stored.pending.count : keys.length;
  const changes = useMemo(() => {
    if (!now) return undefined;
    const wanted = { wanted: columns, ignored };
    const misfits = misfitsOf(slug, keys, before.previews);
    const [rejected, refused] = rejectedIn(now);
    const formats = inferred ? ownFormats(mapping, inferred, misfits, `pipelines/${slug}/`, rejected) : [];
    return [
      ...(inferred ? changesFor(mapping, inferred, rejected, refused, wanted, formats) : []),
      ...(filesOfTable > 1 && !samples ? leavingOut(misfits) : []),
    ];
    // The previews of the stored config don't change while the dialog is open.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [now === undefined, mapping, inferred, filesOfTable > 1]);
  const [chosen, setChosen] = useState<ReadonlyMap<string, boolean>>(new Map());
  const allowed = rejectsAllowed(mapping);
  const [ratio, setRatio] = useState(allowed.ratio);
  const [saving, setSaving] = useState(false);
  const isChosen = ({ id, proposed }: MappingChange) => chosen.get(id) ?? proposed;
  const taken = (changes ?? []).filter(isChosen).sort((a, b) => Number(b.isFirst ?? 0) - Number(a.isFirst ?? 0));
  const isChanged = taken.length > 0 || ratio !== allowed.ratio;
  const apply = (given: StoredMapping) => {
    const changed = taken.reduce((made, change) => change.apply(made), given);
    return ratio === allowed.ratio ? changed : allowingRejects(changed, ratio);
  };
  const config = withMapping(loaded.config, table, apply);
  const left = new Set(taken.map(({ id }) => id));
  const isLeft = (key: string) => left.has(`leave out ${inPipeline(slug, key)}`);
  const out = keys.filter(isLeft);
  const read = keys.filter((key) => !isLeft(key));
  const after = usePreviews(slug, table, read, config, REJECTS_SHOWN, samples);
  const checked = after.stale ? undefined : checkedOf(named(read), after.previews);
  // The changes are made from some files; others of the table show whether they stay readable.
  const lineage = useQuery(lineageQuery(slug, table, { limit: OTHERS_LISTED }));
  const listed = (lineage.data?.sources ?? [])
    .filter(({ archived }) => !archived)
    .map(({ key }) => `pipelines/${slug}/${key}`);
  const others = spread(listed.filter((key) => !keys.includes(key)));
  const othersNow = usePreviews(slug, table, others, loaded.config, REJECTS_SHOWN);
  const othersAfter = usePreviews(slug, table, others, config, REJECTS_SHOWN);
  const harmed = others.filter((_, at) => isWorse(othersNow.previews[at], othersAfter.previews[at]));
  const rowsOut = out.reduce((sum, key) => sum + (before.previews[keys.indexOf(key)]?.counts?.rows_read ?? 0), 0);
  const noneLeft = out.length >= filesOfTable;
  // The previews have one table only, and formats of the checked files.
  const check = useConfigCheck(slug, JSON.stringify(config), isChanged);
  const verdict = isChanged ? check.data : undefined;
  const problems = verdict?.problems ?? [];
  const isValid = verdict?.ok === true && !check.isPlaceholderData;
  const kept = stored && rowsWithout(stored, props.replaced);
  const tooMany = checked && kept && tooManyRejects(kept, checked, columns.length > 0, { ...allowed, ratio });
  const error = before.error ?? after.error;

  const save = async () => {
    const { onFixed } = props;
    if (onFixed) {
      const words = taken.map(({ label }) => label);
      return onFixed({ words: ratio === allowed.ratio ? words : [...words, "Allow rejected rows"], apply });
    }
    setSaving(true);
    try {
      await saveConfig(slug, config, loaded.etag);
      toast.done(`Saved the config of ${table}`);
      props.onSaved?.();
      onClose();
    } catch (failure) {
      toast.failed("Couldn't save the config", failure);
    } finally {
      setSaving(false);
    }
  };

  return (
    <Dialog
      title={title}
      kind="wide"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            variant="primary"
            busy={saving}
            disabled={!isValid || !checked || noneLeft}
            onClick={() => void save()}
          >
            {samples ? "Apply" : "Save and run"}
          </Button>
        </>
      }
    >
      <div class="stack">
        <p class="secondary">
          {counted(keys.length, "file")} compared with the config: {keys.map(nameOf).join(", ")}
          {unlisted > 0 && `; ${counted(unlisted, "other")} not`}.
        </p>
        {inferred?.files_failed.map(({ key, message }) => (
          <Note key={key} tone="bad">
            {nameOf(key)}: {message}
          </Note>
        ))}
        {error ? <Failed title="No preview" error={error} onRetry={after.retry} /> : null}
        {!changes && !error && <Skeleton lines={4} label="Reading the files with the config" />}
        {changes?.length === 0 && <Note>No change of the columns would read more of these files.</Note>}
        {changes?.map((change) => (
          <div key={change.id}>
            <Checkbox
              label={change.label}
              checked={isChosen(change)}
              onChange={(event) => setChosen(new Map([...chosen, [change.id, event.currentTarget.checked]]))}
            />
            <p class="secondary">
              <MessageText text={change.why} />
            </p>
          </div>
        ))}
        {changes && (
          <RejectsField
            ratio={ratio}
            hint="Rejected rows are saved with the reason, and are not in the table."
            onChange={setRatio}
          />
        )}
        <div class="stack" aria-live="polite">
          <ConfigProblems problems={problems} />
          {isChanged && check.error && <Note tone="bad">Couldn’t validate the config: {withRemedy(check.error)}</Note>}
          {(broken(verdict) > 0 || (isValid && verdict.impact_unknown)) && <ImpactList slug={slug} verdict={verdict} />}
          {changes && !checked && !error && <p class="secondary">Reading the files with these changes</p>}
          {checked?.failure !== undefined && <WouldFail failure={checked.failure} />}
          {out.length > 0 && (
            <Note tone={noneLeft ? "bad" : "neutral"}>
              {noneLeft
                ? "A run needs at least one file of the table."
                : leftOutText(out.map(nameOf), rowsOut, filesOfTable - out.length)}
            </Note>
          )}
          {read.length > 0 &&
            checked &&
            checked.failure === undefined &&
            checked.rejected === 0 &&
            problems.length === 0 && <p class="secondary">{readable(checked, after.whole && unlisted === 0)}</p>}
          {checked && now && checked.rejected > now.rejected && (
            <Note tone="bad">
              With these changes, {counted(checked.rejected, "row")} would be rejected instead of {count(now.rejected)}.
            </Note>
          )}
          {harmed.length > 0 && !othersAfter.stale && (
            <Note tone="bad">
              With these changes, {harmed.map(nameOf).join(", ")} {harmed.length === 1 ? "is" : "are"} no longer read as
              now.
            </Note>
          )}
          {tooMany && (
            <Note tone="warn">
              With all files of {table}, {counted(tooMany.rejected, "row")} of {count(tooMany.read)} would be rejected,
              more than allowed, so a run would fail.
            </Note>
          )}
          {checked && checked.rejected > 0 && (
            <RejectedRows
              checked={checked}
              title={`In ${read.map(nameOf).join(", ")}, ${ofChecked(checked.rejected, checked.read, after.whole)} would be rejected`}
            />
          )}
        </div>
      </div>
    </Dialog>
  );
}

/** The first, the middle and the last. */
export const spread = (keys: readonly string[]): string[] => [
  ...new Set([keys[0], keys[Math.floor(keys.length / 2)], keys.at(-1)].filter((key) => key !== undefined)),
];

/** Whether more of a file is rejected than before. */
function isWorse(before: Previewed | undefined, after: Previewed | undefined): boolean {
  if (!before || !after || before.failure) return false;
  return Boolean(after.failure) || (after.counts?.rows_rejected ?? 0) > (before.counts?.rows_rejected ?? 0);
}

interface Previews {
  previews: (Previewed | undefined)[];
  error: unknown;
  stale: boolean;
  /** Every file was read to its end. */
  whole: boolean;
  retry: () => void;
}

/** Previews of the files with a config; the previous ones are shown while loading. `samples`: of those that aren't uploaded. */
export function usePreviews(
  slug: string,
  table: string,
  keys: string[],
  config: unknown,
  limit: number,
  samples?: ReadonlyMap<string, Staged>,
): Previews {
  const text = JSON.stringify(config);
  const queries = useQueries({
    queries: keys.map((key) => ({
      queryKey: ["adapt", slug, "preview", table, samples?.get(key)?.key ?? key, limit, text],
      queryFn: ({ signal }: { signal: AbortSignal }) => {
        const [body, sample] = [{ config: JSON.parse(text) as StoredConfig, table, limit }, samples?.get(key)];
        return sample
          ? previewOfSample(sample, inPipeline(slug, key), body, signal)
          : previewOf(slug, { ...body, key }, signal);
      },
      placeholderData: keepPreviousData,
      staleTime: Infinity,
      gcTime: 10_000,
      retry: false,
      refetchOnWindowFocus: false,
    })),
  });
  return {
    previews: queries.map(({ data }) => data),
    error: queries.find((one) => one.error)?.error,
    stale: queries.some((one) => one.isPending || one.isPlaceholderData),
    whole: queries.every(({ data }) => data?.whole === true),
    retry: () => queries.forEach((one) => one.error && void one.refetch()),
  };
}
