import { useQuery } from "@tanstack/preact-query";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Cell, Previewed, Row } from "../../api/types";
import { SelectField } from "../../components/field";
import { Grid, rowsInMemory } from "../../components/grid";
import { Section } from "../../components/page";
import { MessageText } from "../../components/message-text";
import { Failed, Note, Skeleton } from "../../components/states";
import { bytes, count, counted } from "../../format/number";
import { useQueryParams } from "../../browser/query-params";
import type { Checked } from "./validation";
import { DryRun } from "./dry-run";
import { matcher } from "../../uploads/globs";
import { ImpactList } from "../../tables/impact";
import { OutlookList } from "./next-run";
import type { Outlook } from "./outlook";
import { RejectedRows } from "./rejected-rows";
import { filesQuery, previewQuery, type PipelineFiles } from "./service";

/** Delay before a preview, which reads a file; in milliseconds. */
const DEBOUNCE_MS = 700;
/** Maximum number of files to choose from. */
const OFFERED_MAX = 200;

interface MappingHead {
  table: string;
  files: string[];
}

/** Tables of a config with their globs, as far as valid. */
export function mappingHeads(config: unknown): MappingHead[] {
  const mappings = (config as { mappings?: unknown } | null | undefined)?.mappings;
  if (!Array.isArray(mappings)) return [];
  return mappings.flatMap((mapping: unknown) => {
    if (typeof mapping !== "object" || mapping === null) return [];
    const { table, files } = mapping as { table?: unknown; files?: unknown };
    const globs = Array.isArray(files) ? files.filter((glob) => typeof glob === "string") : [];
    return typeof table === "string" ? [{ table, files: globs }] : [];
  });
}

function countsOf({ counts, whole, bytes_read }: Previewed): string {
  if (!counts) return "";
  const { rows_read, rows_written, rows_rejected, rows_filtered } = counts;
  const parts = [`${count(rows_written)} written`, `${count(rows_rejected)} rejected`];
  if (rows_filtered > 0) parts.push(`${count(rows_filtered)} filtered`);
  const of = whole ? "" : ` of the first ${bytes(bytes_read)}`;
  return `${counted(rows_read, "row")} read${of}: ${parts.join(", ")}`;
}

function Outcome({ previewed, stale }: { previewed: Previewed; stale: boolean }) {
  const { problems, failure, columns, rows } = previewed;
  const warnings = Object.entries(previewed.warnings ?? {});
  const shown = useMemo(() => (columns ?? []).map(({ name, type }) => ({ name, type })), [columns]);
  const source = useMemo(() => rowsInMemory((rows ?? []) as Cell[][] as Row[]), [rows]);
  if (problems.length > 0) return <Note tone="warn">Rows are shown once the config is valid.</Note>;
  return (
    <div class={stale ? "stack config-outcome stale" : "stack config-outcome"} aria-busy={stale}>
      {failure && (
        <Note tone="bad">
          A run would fail: <MessageText text={failure.message} />
          {failure.detail ? ` (${failure.detail})` : ""}
        </Note>
      )}
      {columns && (
        <>
          <p class="secondary" role="status">
            {countsOf(previewed)}
          </p>
          {warnings.map(([name, rowsFailing]) => (
            <Note key={name} tone="warn">
              Check <code>{name}</code>: {counted(rowsFailing, "row")} would fail and still be written.
            </Note>
          ))}
          <RejectedRows
            caption="Rejected rows"
            rows={(previewed.rejects ?? []).map((row) => ({
              id: String(row.byte_offset),
              key: previewed.key,
              line: row.line,
              column: row.column,
              value: row.value ?? row.raw,
              message: row.message,
            }))}
          />
          <Grid
            label="Preview of the first rows"
            columns={shown}
            rows={source}
            rowsShown={12}
            empty="No rows would be written."
          />
        </>
      )}
    </div>
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

function matchingOf(files: PipelineFiles | undefined, globs: string) {
  const is = matcher(globs.split("\n"));
  return (files?.files ?? []).filter(({ name }) => is(name));
}

function PreviewPart({ slug, text, heads }: { slug: string; text: string; heads: MappingHead[] }) {
  const [search, put] = useQueryParams();
  const calm = useDebounced(text);
  const files = useQuery(filesQuery(slug));
  const head = heads.find(({ table }) => table === search.get("table")) ?? heads[0];
  // A string, so that it stays equal while the globs do.
  const globs = head?.files.join("\n") ?? "";
  const matching = useMemo(() => matchingOf(files.data, globs), [files.data, globs]);
  const asked = matching.find(({ key }) => key === search.get("file"))?.key;
  const preview = useQuery({ ...previewQuery(slug, calm, head?.table, asked), enabled: head !== undefined });
  const choose = (name: string, value: string) => {
    if (name === "table") put("file", "");
    put(name, value);
  };
  if (!head) return <p class="secondary">No tables in the config yet. Choose “Add table from CSV” to generate one.</p>;
  return (
    <>
      <div class="config-chosen">
        <SelectField label="Table" value={head.table} onChange={(event) => choose("table", event.currentTarget.value)}>
          {heads.map(({ table }) => (
            <option key={table}>{table}</option>
          ))}
        </SelectField>
        <SelectField
          label={files.data ? `File (${count(matching.length)} matching)` : "File"}
          value={asked ?? ""}
          onChange={(event) => choose("file", event.currentTarget.value)}
        >
          <option value="">{matching[0] ? `First: ${matching[0].name}` : "First matching file"}</option>
          {matching.slice(0, OFFERED_MAX).map(({ key, name }) => (
            <option key={key} value={key}>
              {name}
            </option>
          ))}
        </SelectField>
      </div>
      {preview.error ? (
        <Failed title="No preview" error={preview.error} onRetry={() => void preview.refetch()} />
      ) : preview.data ? (
        <Outcome previewed={preview.data} stale={preview.isFetching || calm !== text} />
      ) : (
        <Skeleton lines={8} label="Preview" />
      )}
    </>
  );
}

interface Props {
  slug: string;
  /** The last text that was valid JSON. */
  text: string;
  config: unknown;
  outlooks: Outlook[];
  checked: Checked;
  /** Why the edited text can't be read, with its line and column; undefined if it can. */
  unreadable: string | undefined;
}

/** Effect of the edited config: preview, all files, next run, impact. */
export function Effect({ slug, text, config, outlooks, checked, unreadable }: Props) {
  const heads = useMemo(() => mappingHeads(config), [config]);
  if (config === undefined)
    return (
      <div class="config-effect">
        <Note tone="bad">{unreadable}. What it does is shown once that is fixed.</Note>
      </div>
    );
  return (
    <div class="config-effect">
      <Section title="Preview">
        <PreviewPart slug={slug} text={text} heads={heads} />
      </Section>
      <Section title="All files">
        <DryRun slug={slug} text={text} disabled={heads.length === 0} />
      </Section>
      <Section title="Next run">
        {unreadable ? <p class="secondary">{unreadable}.</p> : <OutlookList slug={slug} edited={outlooks} />}
      </Section>
      <Section title="Impact">
        <ImpactList slug={slug} verdict={checked.verdict} />
      </Section>
    </div>
  );
}
