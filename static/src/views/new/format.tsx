import type { Inferred } from "../../api/types";
import { bytes, counted, share } from "../../format/number";
import { changesColumns, formatText, itemOf, type Dialect } from "../../tables/dialect";
import { MessageText } from "../../components/message-text";

type Finding = Inferred["findings"][number];

const NAMES: Record<Finding["item"], string> = {
  encoding: "Encoding",
  record_terminator: "Line endings",
  delimiter: "Delimiter",
  trailing_delimiter: "Trailing delimiter",
  quote: "Quote",
  quotes: "Quotes within values",
  escape: "Escape",
  comment: "Comments",
  skip_rows: "Lines before the header",
  skip_footer_rows: "Footer rows to skip",
  footer_values: "Footer rows start with",
  header: "Header",
  null_values: "Treat as null",
  quoted_nulls: "Allow quoted nulls",
  trim: "Spaces around values",
  decimal: "Decimal separator",
  thousands: "Thousands separator",
  booleans: "Booleans",
  ragged_rows: "Rows of different length",
  record_bytes_max: "Longest row",
};

/** Choices besides the detected candidates. */
const CHOICES: Partial<Record<Finding["item"], unknown[]>> = {
  encoding: ["utf-8", "windows-1252", "iso-8859-2", "utf-16le", "utf-16be", "shift_jis", "gb18030"],
  delimiter: [",", ";", "\t", "|"],
  quote: ['"', "'", null],
  header: [true, false],
  skip_footer_rows: [0, 1, 2, 3],
  comment: [null, "#"],
  trim: [false, true],
  decimal: [".", ","],
  thousands: [null, ",", ".", " ", "'"],
  ragged_rows: ["reject", "pad", "fail"],
  quotes: ["strict", "lenient"],
};
const SKIP_ROWS_MAX = 100_000;
/** Shown even without findings. */
const ALWAYS: Finding["item"][] = ["delimiter", "encoding", "header", "skip_rows", "decimal", "null_values"];

export function words(value: unknown): string {
  if (value === null) return "none";
  if (value === true) return "yes";
  if (value === false) return "no";
  if (value === "\t") return "tab";
  if (value === " ") return "space";
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map((one) => (one === "" ? "empty" : String(one))).join(", ");
  if (typeof value !== "object") return JSON.stringify(value);
  return Object.entries(value as Record<string, unknown>)
    .map(([name, one]) => `${name.replace(/_values$/, "")}: ${words(one)}`)
    .join("; ");
}

/** Whether files are split into columns in another way than proposed: the proposal's numbers are about other rows. */
function isSplitAnew(proposed: unknown, dialect: Dialect): boolean {
  const before = typeof proposed === "object" && proposed !== null ? (proposed as Dialect) : {};
  const items = new Set([...Object.keys(before), ...Object.keys(dialect)]);
  return [...items].some(
    (item) => changesColumns(item) && JSON.stringify(itemOf(before, item)) !== JSON.stringify(itemOf(dialect, item)),
  );
}

/** Rows of a sample, whether they can be read or not. */
const rowsOf = ({ rows_read, rows_refused }: Pick<Inferred["sample"], "rows_read" | "rows_refused">): number =>
  rows_read + rows_refused;

/** The format in one line: `semicolon-separated, windows-1252, with header, decimal comma`. */
export function formatLine(
  { sample, csv, files_read }: Inferred,
  dialect: Dialect,
  complete: boolean,
  samples: readonly { key?: string; mark?: string | undefined }[] = [],
): string {
  const isResplit = isSplitAnew(csv, dialect);
  const own = files_read.filter(({ key }) => samples.some((one) => one.key === key));
  const rows = own.length > 0 ? own.reduce((sum, one) => sum + rowsOf(one), 0) : rowsOf(sample);
  const checked = isResplit ? [] : [`${complete ? "all " : ""}${counted(rows, "row")} checked`];
  return [formatText(dialect, samples), ...checked].join(", ");
}

/** The evidence for a setting; it doesn't apply to another value. */
function whyOf({ item, value, why }: Finding, dialect: Dialect): string {
  const now = itemOf(dialect, item);
  const isChanged = typeof value !== "object" && now !== undefined && JSON.stringify(now) !== JSON.stringify(value);
  return isChanged ? `changed; the proposal was ${words(value)}` : why;
}

interface Props {
  inferred: Inferred;
  complete: boolean;
  dialect: Dialect;
  locked: boolean;
  busy: boolean;
  /** Whether the rows of the sample are all in this format. */
  counts?: boolean;
  onChange: (item: string, value: unknown) => void;
}

/** A format as one line that opens. */
export function FormatDetails({ title, line, ...step }: Props & { title: string; line: string }) {
  return (
    <details class="new-format">
      <summary>
        <strong>{title}</strong> <span class="secondary">{line}</span>
      </summary>
      <FormatStep {...step} />
    </details>
  );
}

/** Detected CSV settings with their evidence. */
function FormatStep({ inferred, complete, dialect, locked, busy, counts = true, onChange }: Props) {
  const { findings, sample } = inferred;
  const found = new Set(findings.map(({ item }) => item));
  const silent = ALWAYS.filter((item) => !found.has(item)).map((item): Finding => ({
    item,
    value: itemOf(dialect, item),
    why: "the default",
  }));
  return (
    <>
      {counts && !isSplitAnew(inferred.csv, dialect) && (
        <p class="secondary">
          Checked{" "}
          {complete
            ? `all ${counted(rowsOf(sample), "row")}`
            : `${counted(rowsOf(sample), "row")} (${bytes(sample.bytes_read)})`}
          {inferred.files_read.length > 1 && ` of ${counted(inferred.files_read.length, "sample")}`}
          {sample.rows_refused > 0 && `; ${counted(sample.rows_refused, "row")} can't be read with these settings`}
          {sample.rows_misfit > 0 && `; ${counted(sample.rows_misfit, "row")} would be rejected for an invalid value`}.
        </p>
      )}
      <div class="table-box" aria-busy={busy}>
        <table class="table new-found">
          <thead>
            <tr>
              <th>Setting</th>
              <th>Value</th>
              <th>Why</th>
            </tr>
          </thead>
          <tbody>
            {[...findings, ...silent].map((finding) => (
              <tr key={finding.item}>
                <th scope="row">{NAMES[finding.item]}</th>
                <td>
                  <Value finding={finding} dialect={dialect} locked={locked} onChange={onChange} />
                </td>
                <td class="secondary">
                  <MessageText text={whyOf(finding, dialect)} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Value({
  finding,
  dialect,
  locked,
  onChange,
}: { finding: Finding } & Pick<Props, "dialect" | "locked" | "onChange">) {
  const { item, value, candidates = [] } = finding;
  if (item === "null_values") return <Nulls finding={finding} dialect={dialect} locked={locked} onChange={onChange} />;
  if (item === "skip_rows") return <SkippedLines dialect={dialect} locked={locked} onChange={onChange} />;
  const offered = CHOICES[item];
  if (item === "footer_values") return <span class="mono">{words(itemOf(dialect, item))}</span>;
  if (!offered) return <span class="mono">{words(value)}</span>;
  const now = itemOf(dialect, item);
  const found = candidates.map((candidate) => candidate.value).filter((one) => typeof one !== "object" || one === null);
  const options = [...new Map([now, value, ...found, ...offered].map((one) => [JSON.stringify(one), one])).entries()];
  const support = (option: string) => {
    const candidate = candidates.find((one) => JSON.stringify(one.value) === option);
    return candidate && candidate.of > 0 ? ` (${share(candidate.count / candidate.of)})` : "";
  };
  return (
    <select
      class="input"
      aria-label={NAMES[item]}
      value={JSON.stringify(now)}
      disabled={locked}
      onChange={(event) => onChange(item, JSON.parse(event.currentTarget.value) as unknown)}
    >
      {options.map(([text, one]) => (
        <option key={text} value={text}>
          {words(one) + support(text)}
        </option>
      ))}
    </select>
  );
}

/** Lines of text before the header. */
function SkippedLines({ dialect, locked, onChange }: Pick<Props, "dialect" | "locked" | "onChange">) {
  return (
    <input
      class="input num"
      type="number"
      min={0}
      max={SKIP_ROWS_MAX}
      aria-label={NAMES.skip_rows}
      value={String(itemOf(dialect, "skip_rows"))}
      disabled={locked}
      onChange={(event) => {
        const lines = event.currentTarget.valueAsNumber;
        if (Number.isInteger(lines) && lines >= 0 && lines <= SKIP_ROWS_MAX) onChange("skip_rows", lines);
        else event.currentTarget.value = String(itemOf(dialect, "skip_rows"));
      }}
    />
  );
}

/** Null tokens, the empty value first. */
function Nulls({
  finding,
  dialect,
  locked,
  onChange,
}: { finding: Finding } & Pick<Props, "dialect" | "locked" | "onChange">) {
  const now = itemOf(dialect, "null_values") as string[];
  const found = (finding.candidates ?? []).map(({ value }) => value).filter((value) => typeof value === "string");
  const tokens = [...new Set(["", ...now, ...found])];
  return (
    <div class="new-tokens">
      {tokens.map((token) => (
        <label key={token} class="checkbox">
          <input
            type="checkbox"
            checked={now.includes(token)}
            disabled={locked}
            onChange={(event) =>
              onChange(
                "null_values",
                event.currentTarget.checked ? [...now, token] : now.filter((one) => one !== token),
              )
            }
          />
          {token === "" ? <span>empty</span> : <code>{token}</code>}
        </label>
      ))}
    </div>
  );
}
