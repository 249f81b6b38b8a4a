/**
 * Predicts what the next run does about a changed config.
 *
 * Follows the service's rule: a table is rebuilt if its definition changed, except for files, variants, allowed rejects
 * and checks that only warn.
 */
import type { Job, PipelineStatus, TableStatus } from "../../api/types";
import { counted } from "../../format/number";
import { isSchema, propertiesOf, type Schema } from "../../components/editor/schema";

export type Outlook = { table: string } & (
  | { change: "new" | "rebuilt" | "files" | "variants" | "quiet" | "removed" | "unapplied" }
  | { change: "shape"; what: string[] }
  | { change: "sources"; pending: number; gone: number }
);

type Members = Record<string, unknown>;
const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const same = (a: unknown, b: unknown): boolean => stable(a) === stable(b);

function stable(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stable).join(",")}]`;
  if (!isMembers(value)) return JSON.stringify(value) ?? "undefined";
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${stable(value[key])}`).join(",")}}`;
}

/** Drops members that equal the default. */
function withoutDefaults(value: unknown, schema: Schema | undefined): unknown {
  if (!schema) return value;
  if (Array.isArray(value)) {
    const items = isSchema(schema.items) ? schema.items : undefined;
    return value.map((item) => withoutDefaults(item, items));
  }
  if (!isMembers(value)) return value;
  const properties = new Map(propertiesOf(schema));
  const kept = Object.entries(value).map(
    ([name, member]) => [name, withoutDefaults(member, properties.get(name))] as const,
  );
  return Object.fromEntries(
    kept.filter(([name, member]) => {
      const property = properties.get(name);
      if (!property || !("default" in property)) return true;
      return !same(member, property.default) && !same(member, withoutDefaults(property.default, property));
    }),
  );
}

interface Mapping {
  table: string;
  files: unknown;
  variants: unknown;
  quiet: unknown;
  columns: unknown;
  partitioning: unknown;
  rest: unknown;
}

function mappingOf(value: Members, schema: Schema | undefined): Mapping | undefined {
  const {
    table,
    files,
    variants,
    rejects,
    checks,
    when_removed,
    keep_history,
    freshness,
    publish,
    empty_files,
    ...others
  } = withoutDefaults(value, schema) as Members;
  if (typeof table !== "string") return undefined;
  const { readers, ...parquet } = isMembers(others.parquet) ? others.parquet : {};
  const rest: Members = { ...others, parquet };
  const listed = Array.isArray(checks) ? (checks as unknown[]) : [];
  const isQuiet = (check: unknown) => isMembers(check) && check.on_fail === "warn";
  const columns = Array.isArray(rest.columns) ? (rest.columns as unknown[]) : [];
  const named = columns.filter(isMembers).map(({ name, type }) => stable([name, type]));
  return {
    table,
    files,
    variants,
    quiet: [rejects, listed.filter(isQuiet), when_removed, keep_history, freshness, publish, empty_files, readers],
    columns: named.sort(),
    partitioning: rest.partition_by,
    rest: [rest, listed.filter((check) => !isQuiet(check))],
  };
}

function mappingsOf(config: unknown, schema: unknown): Map<string, Mapping> {
  const listed: unknown[] = isMembers(config) && Array.isArray(config.mappings) ? (config.mappings as unknown[]) : [];
  const property = isSchema(schema) ? new Map(propertiesOf(schema)).get("mappings") : undefined;
  const items = property && isSchema(property.items) ? property.items : undefined;
  const found = listed.filter(isMembers).map((one) => mappingOf(one, items));
  return new Map(found.filter((one) => one !== undefined).map((one) => [one.table, one]));
}

function compared(before: Mapping, after: Mapping): Outlook | undefined {
  const { table } = after;
  const what = [
    ...(same(before.columns, after.columns) ? [] : ["columns"]),
    ...(same(before.partitioning, after.partitioning) ? [] : ["partitioning"]),
  ];
  if (what.length > 0) return { table, change: "shape", what };
  if (!same(before.rest, after.rest)) return { table, change: "rebuilt" };
  if (!same(before.files, after.files)) return { table, change: "files" };
  if (!same(before.variants, after.variants)) return { table, change: "variants" };
  return same(before.quiet, after.quiet) ? undefined : { table, change: "quiet" };
}

/** Tables affected by a change, those of the new config first. */
export function outlook(before: unknown, after: unknown, schema: unknown): Outlook[] {
  const [old, now] = [mappingsOf(before, schema), mappingsOf(after, schema)];
  const found: Outlook[] = [];
  for (const [table, mapping] of now) {
    const was = old.get(table);
    const change = was ? compared(was, mapping) : ({ table, change: "new" } as const);
    if (change) found.push(change);
  }
  for (const table of old.keys()) if (!now.has(table)) found.push({ table, change: "removed" });
  return found;
}

/** A table that is affected by what is saved and in the lake already; undefined if it is up to date. */
function currentOutlook({ name: table, state, pending, removed }: TableStatus): Outlook | undefined {
  if (state === "new") return { table, change: "new" };
  if (state === "removed") return { table, change: "removed" };
  if (state === "changed") return { table, change: "unapplied" };
  if (pending.count + removed.count === 0) return undefined;
  return { table, change: "sources", pending: pending.count, gone: removed.count };
}

/** Tables that the next run affects: by the edited config, by a saved one that wasn't applied, and by files. */
export function nextRun(edited: Outlook[], status: PipelineStatus): Outlook[] {
  const all = new Map(edited.map((one) => [one.table, one]));
  for (const table of status.tables) {
    const now = currentOutlook(table);
    const edit = all.get(table.name);
    // A rebuild is reported even if it writes nothing new.
    const isSmall = edit === undefined || ["files", "variants", "quiet"].includes(edit.change);
    if (now && (now.change === "sources" ? edit === undefined : isSmall)) all.set(table.name, now);
  }
  return [...all.values()];
}

export function outlookText(one: Outlook): string {
  switch (one.change) {
    case "new":
      return "is new and will be built from the matching files.";
    case "rebuilt":
      return "will be rebuilt from all its files.";
    case "shape":
      return `${one.what.join(" and ")} change; the table will be rebuilt from all its files.`;
    case "files":
      return "reads different files; rows of newly matching files are added, rows of files that no longer match are removed.";
    case "variants":
      return "reads the files of the changed variants again.";
    case "quiet":
      return "isn't rebuilt; the changed settings apply from the next run.";
    case "unapplied":
      return "was changed by a saved config that isn't applied yet; the next run applies it.";
    case "sources": {
      const reads = one.pending > 0 ? [`reads ${counted(one.pending, "new or changed file")}`] : [];
      const gone = one.gone > 0 ? [`removes the rows of ${counted(one.gone, "deleted file")}`] : [];
      return `${[...reads, ...gone].join(" and ")}.`;
    }
    case "removed":
      return "is no longer in the config; it is kept until a clean run deletes it.";
  }
}

/** Whether a run that started after a save has completed. `before`: the jobs that had started by then. */
export const isApplied = (jobs: readonly Pick<Job, "job_id" | "status">[], before: ReadonlySet<string>): boolean =>
  jobs.some(({ job_id: id, status }) => status === "completed" && !before.has(id));
