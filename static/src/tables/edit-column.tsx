/** Changes one column of a table: its type, formats and nulls, with the effect on the files before it is saved. */
import { useQuery } from "@tanstack/preact-query";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask } from "../api/client";
import { loadConfig, saveText, type StoredConfig } from "../api/config";
import { asFailure, type ApiFailure } from "../api/failure";
import { lineageQuery, statusQuery } from "../api/queries";
import { COLUMN_TYPES } from "../api/rules";
import type { ConfigProblem, Inferred } from "../api/types";
import { isPersisted } from "../browser/persisted";
import { routes } from "../browser/routes";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { Checkbox, SelectField, TextField } from "../components/field";
import { Failed, Note, Skeleton } from "../components/states";
import { toast } from "../components/toasts";
import { count, counted } from "../format/number";
import { withRemedy } from "../format/remedies";
import { patternOf } from "../format/time-pattern";
import { typeWithName, typeWords } from "../format/types";
import { variantOf } from "../uploads/parts";
import { spread, usePreviews } from "./adapt";
import {
  isNumber,
  isSame,
  isTemporal,
  list,
  numberFormatOf,
  READING,
  rejectsAllowed,
  suits,
  tooManyRejects,
  typeLine,
  isRead,
} from "./changes";
import { checkedOf, readable, RejectedRows, WouldFail } from "./checked";
import {
  editedMapping,
  editedText,
  entryOf,
  NO_EDIT,
  placeOf,
  proposalOf,
  type ColumnEdit,
  type ColumnPlace,
} from "./column";
import { isDialect, itemOf } from "./dialect";
import { Examples, numberExample, ReadingFields } from "./column-reading";
import { broken, ConfigProblems, ImpactList, useConfigCheck } from "./impact";
import { RejectsField } from "./rejects";
import "./column.css";

type Members = Record<string, unknown>;

/** Files of the table that are listed, and of them those that are checked. */
const FILES_LISTED = 100;
const FILES_MAX = 8;
/** Rejected rows of a file that are counted, and that are shown. */
const REJECTS_COUNTED = 500;
const REJECTS_SHOWN = 10;
/** Delay before the effect of typing is loaded, in milliseconds. */
const DEBOUNCE_MS = 400;

const COMMON = ["string", "int64", "decimal(18,2)", "float64", "date", "timestamp", "timestamptz", "time", "boolean"];
/** Fields that show their own problems. */
const FIELDS = ["name", "type", "formats", "timezone", "number_format"];

interface Props {
  slug: string;
  /** Default: the first. */
  table?: string;
  column?: string;
  /** A text to change instead of the stored config; the column is chosen in the dialog. */
  draft?: { text: string; onApply: (text: string) => void };
  onClose: () => void;
  /** Starts a run. */
  onRun?: () => void;
}

/** Loads the config, and finds the column in it. */
export function EditColumn(props: Props) {
  const { slug, draft, onClose } = props;
  const stored = useQuery({
    queryKey: ["column", slug],
    queryFn: () => loadConfig(slug),
    enabled: draft === undefined,
    staleTime: 0,
    gcTime: 0,
    refetchOnWindowFocus: false,
  });
  const [chosen, setChosen] = useState({ table: props.table, column: props.column });
  const text = draft?.text ?? stored.data?.text;
  const config = useMemo(() => (text === undefined ? undefined : (JSON.parse(text) as StoredConfig)), [text]);
  const mappings = list(config?.mappings) as Members[];
  const table = chosen.table ?? String(mappings[0]?.table);
  const columns = list(mappings.find((one) => one.table === table)?.columns) as Members[];
  const column = chosen.column ?? String(columns[0]?.name);
  const place = config && placeOf(config, table, column);
  if (text === undefined || !config || !place)
    return (
      <Dialog title="Edit column" onClose={onClose}>
        {stored.error ? (
          <Failed title="Couldn't load the config" error={stored.error} onRetry={() => void stored.refetch()} />
        ) : config ? (
          <Note tone="warn">
            The config has no column {column} of {table}. The partitions make it, or it was renamed or removed since the
            last run.
          </Note>
        ) : (
          <Skeleton lines={8} label="Loading the config" />
        )}
      </Dialog>
    );
  return (
    <ColumnForm
      key={`${table} ${column}`}
      {...props}
      text={text}
      config={config}
      place={place}
      etag={stored.data?.etag ?? null}
      choice={
        draft && (
          <div class="column-fields">
            <SelectField
              label="Table"
              value={table}
              onChange={(event) => setChosen({ table: event.currentTarget.value, column: undefined })}
            >
              {mappings.map(({ table: one }) => (
                <option key={String(one)}>{String(one)}</option>
              ))}
            </SelectField>
            <SelectField
              label="Column"
              value={column}
              onChange={(event) => setChosen({ table, column: event.currentTarget.value })}
            >
              {columns.map(({ name }) => (
                <option key={String(name)}>{String(name)}</option>
              ))}
            </SelectField>
          </div>
        )
      }
      onReload={() => stored.refetch()}
    />
  );
}

function useDebounced<T>(value: T): T {
  const [calm, setCalm] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setCalm(value), DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return calm;
}

/** The table's files by the variant that reads them; -1: by none. Undefined while they are loaded. */
function useFiles(slug: string, { mapping }: ColumnPlace) {
  const lineage = useQuery({ ...lineageQuery(slug, String(mapping.table), { limit: FILES_LISTED }), retry: false });
  if (lineage.isPending) return undefined;
  const variants = list(mapping.variants);
  const files = (lineage.data?.sources ?? [])
    .filter(({ archived }) => !archived)
    .map(({ key }) => ({ key: `pipelines/${slug}/${key}`, at: variants.indexOf(variantOf(mapping, key)) }));
  const of = (variant: number) => files.filter(({ at }) => at === variant).map(({ key }) => key);
  const others = variants.map((_, at) => of(at));
  const checked = [...spread(of(-1)), ...others.flatMap(([first]) => first ?? [])].slice(0, FILES_MAX);
  // A table without rows has files that weren't read yet.
  const keys = checked.length > 0 ? checked : [""];
  return { own: of(-1), others, keys, complete: keys.length === (lineage.data?.sources_total ?? 0) };
}

const nameOf = (key: string): string => key.slice(key.lastIndexOf("/") + 1);

interface FormProps extends Props {
  text: string;
  config: StoredConfig;
  place: ColumnPlace;
  etag: string | null;
  choice: preact.ComponentChildren;
  onReload: () => Promise<unknown>;
}

function ColumnForm(props: FormProps) {
  const { slug, text, place, etag, choice, draft, onReload, onClose, onRun } = props;
  const { mapping, column } = place;
  const [edit, setEdit] = useState<ColumnEdit>(NO_EDIT);
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<ApiFailure>();
  const table = String(mapping.table);
  const after = editedMapping(place, edit);
  const made = list(after.columns)[Number(place.path.split("/")[4])] as Members;
  const edited = useMemo(() => editedText(text, place, edit), [text, place, edit]);
  const isChanged = edited !== text;
  const type = String(made.type);
  const calm = useDebounced(edited);
  const check = useConfigCheck(slug, calm);
  const problems = [...(check.data?.problems ?? []), ...((refusal?.problems ?? []) as unknown as ConfigProblem[])];
  const problemOf = (path: string) => (member: string) =>
    problems.find((one) => `${one.path}/`.startsWith(`${path}/${member}/`))?.message;
  const ownProblem = problemOf(place.path);
  const others = problems.filter(
    ({ path }) => !FIELDS.some((member) => `${path}/`.startsWith(`${place.path}/${member}/`)),
  );
  const change = (changed: (before: ColumnEdit) => ColumnEdit) => {
    setRefusal(undefined);
    setEdit(changed);
  };
  const put = (members: Members) => change((before) => ({ ...before, members: { ...before.members, ...members } }));
  const files = useFiles(slug, place);
  const inferred = useQuery({
    queryKey: ["column", slug, "infer", files?.own],
    queryFn: ({ signal }) => {
      const [key = "", ...also] = spread(files?.own ?? []);
      const params = { path: { pipeline: slug }, query: { key, also } };
      return ask(api.POST("/api/p/{pipeline}/infer", { params, signal }));
    },
    enabled: (files?.own.length ?? 0) > 0,
    retry: false,
    refetchOnWindowFocus: false,
  });
  const proposal = inferred.data && proposalOf(place, inferred.data);
  const readings = proposal ? [proposal, ...(proposal.evidence.alternatives ?? [])] : [];
  const setType = (next: string) => {
    const fits: ((one: string) => boolean)[] = [
      (one) => one === next,
      (one) => typeWords(one) === typeWords(next),
      (one) => isNumber(one) && isNumber(next),
    ];
    const found = fits.flatMap((is) => readings.filter((one) => is(one.type)))[0];
    const rest = Object.fromEntries(Object.entries(edit.members).filter(([name]) => !READING.includes(name)));
    const reading = found && {
      formats: found.formats ?? [],
      number_format: numberFormatOf(
        ("number_format" in found && found.number_format) || signsOf(mapping, inferred.data),
      ),
    };
    // Files of another format keep its separators.
    const apart = Object.keys(reading?.number_format ?? {}).length > 0;
    const entries = list(mapping.variants).flatMap((one, at) =>
      apart && entryOf(one, column.name) < 0 ? [[at, {}] as const] : [],
    );
    change(({ variants, ...before }) =>
      next === column.type
        ? { ...before, members: rest, variants: {} }
        : {
            ...before,
            members: { ...rest, type: next, ...reading },
            variants: { ...Object.fromEntries(entries), ...variants },
          },
    );
  };
  const common = [...new Set([String(column.type), type, ...readings.map((one) => one.type), ...COMMON])];
  const [, digits, scale] = /^decimal\((\d*), *(\d*)\)$/.exec(type) ?? [];
  const isComputed = !isRead(column);

  const save = async (run: boolean) => {
    setBusy(true);
    setRefusal(undefined);
    try {
      if (draft) draft.onApply(edited);
      else {
        await saveText(slug, edited, etag);
        toast.done(`Saved the config of ${table}`);
      }
      onClose();
      if (run) onRun?.();
    } catch (error) {
      const failure = asFailure(error);
      setRefusal(failure);
      if (failure.status === 412) await onReload();
    } finally {
      setBusy(false);
    }
  };
  const isChecked = calm === edited && !check.isPlaceholderData && check.data?.ok === true;
  const ready = isChanged && isChecked && !refusal?.problems.length;

  return (
    <Dialog
      title={`Edit column ${String(column.name)}`}
      kind="wide"
      unsaved={isChanged ? `the column ${String(column.name)}` : undefined}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          {draft ? (
            <Button variant="primary" disabled={!ready} onClick={() => void save(false)}>
              Apply to the editor
            </Button>
          ) : (
            <>
              <Button busy={busy} disabled={!ready} onClick={() => void save(false)}>
                Save
              </Button>
              <Button variant="primary" busy={busy} disabled={!ready} onClick={() => void save(true)}>
                Save and run
              </Button>
            </>
          )}
        </>
      }
    >
      {!draft && isPersisted(`draft.config.${slug}`) && (
        <Note tone="warn">
          This browser has unsaved changes of the config. They stay: the{" "}
          <Link href={`~${routes.config(slug)}`}>config editor</Link> offers to merge them with what you save here.
        </Note>
      )}
      {choice}
      {isComputed && (
        <p class="secondary">
          {typeof column.expr === "string" ? "Computed by " : "From the path of each file: "}
          <code>{[column.expr ?? column.from_path].flat().join(", ")}</code>
        </p>
      )}
      <div class="column-fields">
        <TextField
          label="Name"
          value={String(made.name)}
          error={ownProblem("name")}
          hint={
            made.name === column.name
              ? undefined
              : "After the run, the dashboards list offers to replace the old name in dashboards, and a saved query when you run it."
          }
          onInput={(event) => put({ name: event.currentTarget.value })}
        />
        <SelectField
          label="Type"
          value={type}
          error={ownProblem("type")}
          hint={proposal && `Detected in the files: ${typeLine(proposal)}`}
          onChange={(event) => setType(event.currentTarget.value)}
        >
          <optgroup label="Common types">
            {common.map((one) => (
              <option key={one} value={one}>
                {typeWithName(one)}
              </option>
            ))}
          </optgroup>
          <optgroup label="Other types">
            {COLUMN_TYPES.filter((one) => !common.includes(one)).map((one) => (
              <option key={one}>{one}</option>
            ))}
          </optgroup>
        </SelectField>
        {digits !== undefined && (
          <>
            <TextField
              label="Digits"
              type="number"
              min={1}
              max={38}
              value={digits}
              onInput={(event) => put({ type: `decimal(${event.currentTarget.value},${scale ?? ""})` })}
            />
            <TextField
              label="Of them after the point"
              type="number"
              min={0}
              max={38}
              value={scale ?? ""}
              onInput={(event) => put({ type: `decimal(${digits},${event.currentTarget.value})` })}
            />
          </>
        )}
        <SelectField
          label="Values that can’t be read"
          value={typeof made.on_error === "string" ? made.on_error : "reject"}
          onChange={(event) => put({ on_error: event.currentTarget.value })}
        >
          <option value="reject">Reject the row</option>
          <option value="null">Leave the cell empty</option>
          <option value="fail">Fail the run</option>
        </SelectField>
        <Checkbox
          label="Allow empty cells"
          checked={made.nullable !== false}
          onChange={(event) => put({ nullable: event.currentTarget.checked })}
        />
      </div>
      {!isComputed && (
        <>
          <ReadingFields key={type} type={type} value={made} csv={mapping.csv} problem={ownProblem} onChange={put} />
          {files && (files.own.length > 0 || files.others.length === 0) && (
            <Examples {...props} mapping={after} column={made} file={files.own[0] ?? ""} />
          )}
        </>
      )}
      {files &&
        list(mapping.variants).map((variant, at) => (
          <VariantReading
            key={at}
            slug={slug}
            config={props.config}
            globs={list((variant as Members).files).join(", ")}
            before={list((variant as Members).columns)[entryOf(variant, column.name)] as Members | undefined}
            after={after}
            column={made}
            at={at}
            files={files.others[at] ?? []}
            problem={(entry) => problemOf(`${place.table}/variants/${at}/columns/${entry}`)}
            onChange={(members) =>
              change((before) => ({
                ...before,
                variants: { ...before.variants, [at]: { ...before.variants[at], ...members } },
              }))
            }
          />
        ))}
      {refusal?.status === 412 ? (
        <Note tone="warn">
          Someone else saved the config meanwhile. Your change is now based on theirs. Check it, then save again.
        </Note>
      ) : (
        refusal && <Note tone="bad">The config wasn’t saved: {withRemedy(refusal)}</Note>
      )}
      <ConfigProblems problems={others} />
      {check.error && <Note tone="bad">Couldn’t validate the config: {withRemedy(check.error)}</Note>}
      <h3>Effect</h3>
      {isChanged && <p class="secondary">{nextRunText(place, after)}</p>}
      {(broken(check.data) > 0 || (isChanged && check.data?.impact_unknown)) && (
        <ImpactList slug={slug} verdict={check.data} />
      )}
      {files && check.data?.ok && problems.length === 0 && (
        <Outcome
          {...props}
          calm={calm}
          made={made}
          files={files}
          ratio={edit.ratio}
          onRatio={(ratio) => change((before) => ({ ...before, ratio }))}
        />
      )}
    </Dialog>
  );
}

/** The separators of numbers that the files have, where those of the config are others. */
function signsOf({ csv }: Members, inferred: Inferred | undefined): Members {
  const found = inferred?.csv_full;
  const given = isDialect(csv) ? csv : {};
  const isOther = found && (["decimal", "thousands"] as const).some((one) => found[one] !== itemOf(given, one));
  return isOther ? { decimal: found.decimal, thousands: found.thousands } : {};
}

/** What the next run does about the change. */
function nextRunText({ mapping }: ColumnPlace, after: Members): string {
  const changes = (...members: string[]) => members.some((one) => !isSame(mapping[one], after[one]));
  if (changes("columns", "partition_by", "sort_by"))
    return `The next run rebuilds ${String(mapping.table)} from all its files. Until then, the table stays as it is.`;
  return changes("variants")
    ? "The next run reads the files of the changed formats again."
    : "The change applies from the next run.";
}

interface VariantProps {
  slug: string;
  config: StoredConfig;
  globs: string;
  /** The entry for the column, as it is stored. */
  before: Members | undefined;
  after: FormProps["place"]["mapping"];
  column: Members;
  /** Index of the variant. */
  at: number;
  files: string[];
  problem: (entry: number) => (member: string) => string | undefined;
  onChange: (members: Members) => void;
}

/** The column in files of another format. */
function VariantReading(props: VariantProps) {
  const { slug, config, globs, before, after, column, at, files, problem, onChange } = props;
  const variant = list(after.variants)[at] as Members;
  const entry = entryOf(variant, column.name);
  const own = list(variant.columns)[entry] as Members | undefined;
  const type = String(column.type);
  const lost = Object.keys(before ?? {}).filter((member) => READING.includes(member) && !suits(member, type));
  const which = `${counted(files.length, "file")} of the format ${globs}`;
  if (!own && !isTemporal(type) && !isNumber(type)) return null;
  const [here, there] = [after.csv, variant.csv].map((csv) => numberExample(type, column.number_format, csv));
  const separators = isNumber(type) && here !== there ? `, but numbers as ${there ?? ""}` : "";
  return (
    <section class="stack">
      <h3>{own ? `${which}: own format of this column` : which}</h3>
      {lost.length > 0 && (
        <Note tone="warn">
          These files have their own format of this column
          {before?.formats ? ` (${list(before.formats).map(String).map(patternOf).join(" or ")})` : ""}, which{" "}
          {typeWords(type)} doesn’t have. It is removed when you save.
        </Note>
      )}
      {own ? (
        <ReadingFields
          key={type}
          type={type}
          value={own}
          csv={variant.csv}
          problem={problem(entry)}
          onChange={onChange}
        />
      ) : (
        <p class="row wrap secondary">
          They are read as above{separators}.
          <Button onClick={() => onChange({ formats: column.formats, timezone: column.timezone })}>
            Set their own format
          </Button>
        </p>
      )}
      {files[0] !== undefined && (
        <Examples slug={slug} config={config} mapping={after} column={column} file={files[0]} />
      )}
    </section>
  );
}

interface OutcomeProps extends FormProps {
  /** The edited text, after a pause in typing. */
  calm: string;
  made: Members;
  files: NonNullable<ReturnType<typeof useFiles>>;
  ratio: number | undefined;
  onRatio: (ratio: number) => void;
}

/** The outcome of a run for the first files, compared with the stored config. */
function Outcome({ slug, config, place, calm, made, files, ratio, onRatio }: OutcomeProps) {
  const { mapping } = place;
  const { keys } = files;
  const table = String(mapping.table);
  const draft = useMemo(() => JSON.parse(calm) as StoredConfig, [calm]);
  const isLenient = made.on_error === "null";
  const strict = useMemo(() => {
    const found = placeOf(draft, table, String(made.name));
    return found && isLenient
      ? (JSON.parse(editedText(calm, found, { ...NO_EDIT, members: { on_error: "reject" } })) as StoredConfig)
      : draft;
  }, [draft, calm, table, made.name, isLenient]);
  const [before, after, blanks] = [
    usePreviews(slug, table, keys, config, REJECTS_COUNTED),
    usePreviews(slug, table, keys, draft, REJECTS_COUNTED),
    usePreviews(slug, table, isLenient ? keys : [], strict, REJECTS_COUNTED),
  ];
  const { data: status } = useQuery(statusQuery(slug));
  const stored = status?.tables.find((one) => one.name === table);
  const samples = keys.map((key) => ({ name: key === "" ? "The first file" : nameOf(key) }));
  const [now, checked, blank] = [before, after, blanks].map((one) => checkedOf(samples, one.previews));
  if (after.error) return <Failed title="No preview" error={after.error} onRetry={after.retry} />;
  if (!checked || !now || after.stale) return <p class="secondary">Reading the files with this column</p>;
  const isWhole = after.whole && files.complete;
  const ofColumn = checked.rejects.filter((one) => one.column === made.name);
  const shown = [...ofColumn, ...checked.rejects.filter((one) => one.column !== made.name)].slice(0, REJECTS_SHOWN);
  const emptied = (blank?.rejects ?? []).filter((one) => one.column === made.name && one.reason !== "null_not_allowed");
  const allowed = rejectsAllowed(mapping);
  const tooMany = stored && tooManyRejects(stored, checked, true, { ...allowed, ratio: ratio ?? allowed.ratio });
  return (
    <div class="stack" aria-live="polite">
      {checked.failure !== undefined && <WouldFail failure={checked.failure} />}
      {checked.failure === undefined && checked.rejected === 0 && emptied.length === 0 && (
        <p class="secondary">{readable(checked, isWhole)}</p>
      )}
      {blank && emptied.length > 0 && (
        <RejectedRows
          title={`${counted(emptied.length, "value")} in ${counted(blank.read, isWhole ? "row" : "checked row")} can’t be read and would be left empty`}
          checked={{ ...blank, rejects: emptied.slice(0, REJECTS_SHOWN), rejected: emptied.length }}
        />
      )}
      {checked.rejected > 0 && (
        <>
          <RejectedRows checked={{ ...checked, rejects: shown }} complete={isWhole} />
          <p class="secondary">
            {checked.rejected === now.rejected
              ? "As many are rejected now."
              : `Now ${now.rejected === 0 ? "none" : count(now.rejected)} of them would be rejected.`}
          </p>
        </>
      )}
      {tooMany && (
        <Note tone="warn">
          {counted(tooMany.rejected, "row")} of {count(tooMany.read)} of the table would be rejected, more than allowed,
          so a run would fail.
        </Note>
      )}
      {(checked.rejected > 0 || ratio !== undefined) && (
        <RejectsField
          ratio={ratio ?? allowed.ratio}
          hint="Rejected rows are saved with the reason, and are not in the table."
          onChange={onRatio}
        />
      )}
    </div>
  );
}
