/** How the cells of a column are written: formats of times, the time zone, the format of numbers. */
import { Plus, X } from "lucide-preact";
import { useId, useState } from "preact/hooks";
import type { StoredConfig, StoredMapping } from "../api/config";
import type { Cell } from "../api/types";
import { Button, IconButton } from "../components/button";
import { Checkbox, SelectField, TextField } from "../components/field";
import { ISO_WORDS, patternOf, strftimeOf } from "../format/time-pattern";
import { plain } from "../format/values";
import { usePreviews } from "./adapt";
import { isNumber, isTemporal, list, numberFormatOf } from "./changes";
import { isDialect, itemOf, SIGNS } from "./dialect";
import { exampleMapping, RAW } from "./column";

type Members = Record<string, unknown>;

const EXAMPLES_MAX = 5;
/** Rows that examples are taken from. */
const ROWS_READ = 200;

const DATES = ["YYYY-MM-DD", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY", "YYYYMMDD"];
const OFFERED: Record<string, string[]> = {
  date: [...DATES, "excel"],
  time: ["HH:MM", "HH:MM:SS"],
};
const offeredFor = (type: string): string[] =>
  OFFERED[type] ?? [
    ...DATES.map((date) => `${date} HH:MM`),
    // Of days, which are their midnight.
    ...DATES,
    ISO_WORDS,
    "epoch_s",
    "epoch_ms",
    "excel",
  ];

interface Props {
  type: string;
  /** The column, or its entry in a variant. */
  value: Members;
  /** The format of the files. */
  csv: unknown;
  /** The service's problem with a member. */
  problem: (member: string) => string | undefined;
  onChange: (members: Members) => void;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

export function ReadingFields(props: Props) {
  const { type, value, problem, onChange } = props;
  return (
    <>
      {isTemporal(type) && <Formats key={type} {...props} />}
      {type === "timestamptz" && (
        <TextField
          label="Time zone of values without an offset"
          placeholder="UTC"
          hint="For example Europe/Berlin."
          value={text(value.timezone)}
          error={problem("timezone")}
          onInput={(event) => onChange({ timezone: event.currentTarget.value.trim() })}
        />
      )}
      {isNumber(type) && <NumberFormat {...props} />}
    </>
  );
}

/** Each format as it is typed. */
function Formats({ type, value, problem, onChange }: Props) {
  const [typed, setTyped] = useState(() => {
    const given = list(value.formats).map((one) => patternOf(String(one)));
    return given.length > 0 ? given : [""];
  });
  const offered = useId();
  const put = (now: string[]) => {
    setTyped(now);
    onChange({ formats: now.map((one) => strftimeOf(one.trim())).filter((one) => one !== "") });
  };
  return (
    <div class="column-formats">
      <datalist id={offered}>
        {offeredFor(type).map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      {typed.map((one, at) => (
        <div key={at} class="row">
          <div class="grow">
            <TextField
              label={at === 0 ? "Format" : `Format ${at + 1}`}
              class="mono"
              list={offered}
              placeholder="like 2025-02-01"
              hint={at === 0 ? "For example DD.MM.YYYY or %d.%m.%Y. Empty: like 2025-02-01 13:45." : undefined}
              value={one}
              error={at === 0 ? problem("formats") : undefined}
              onInput={(event) => put(typed.with(at, event.currentTarget.value))}
            />
          </div>
          {typed.length > 1 && (
            <IconButton
              label={`Remove format ${at + 1}`}
              icon={<X />}
              onClick={() => put(typed.filter((_, other) => other !== at))}
            />
          )}
        </div>
      ))}
      <Button icon={<Plus />} onClick={() => setTyped([...typed, ""])}>
        Add format
      </Button>
    </div>
  );
}

const signWords = (sign: string): string => (sign === "" ? "none" : (SIGNS[sign] ?? sign));

/** How a number is written in the column's own format, else in that of the files: `1.234,5`. */
export function numberExample(type: string, format: unknown, csv: unknown): string {
  const { decimal, thousands } = (format ?? {}) as Members;
  const own = text(decimal) || text(thousands) ? {} : isDialect(csv) ? csv : {};
  const fraction = /^u?int/.test(type) ? "" : `${text(decimal) || text(itemOf(own, "decimal"))}5`;
  return `1${text(thousands) || text(itemOf(own, "thousands"))}234${fraction}`;
}

function NumberFormat({ type, value, csv, problem, onChange }: Props) {
  const format = (value.number_format ?? {}) as Members;
  const [currency, setCurrency] = useState(() => list(format.currency).join(", "));
  const put = (members: Members) => onChange({ number_format: numberFormatOf({ ...format, ...members }) });
  const error = problem("number_format");
  const dialect = isDialect(csv) ? csv : {};
  const sign = (label: string, member: string, signs: string[]) => (
    <SelectField
      label={label}
      value={text(format[member])}
      onChange={(event) => put({ [member]: event.currentTarget.value || null })}
    >
      {[...new Set(["", ...signs, text(format[member])])].map((one) => (
        <option key={one} value={one}>
          {one === "" ? `as in the file's format (${signWords(text(itemOf(dialect, member)))})` : signWords(one)}
        </option>
      ))}
    </SelectField>
  );
  return (
    <details open={Object.keys(format).length > 0 || error !== undefined}>
      <summary>Number format</summary>
      {error && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
      <div class="column-fields">
        {sign("Decimal separator", "decimal", [".", ","])}
        {sign("Thousands separator", "thousands", [",", ".", " ", "'"])}
        <TextField
          label="Currency"
          placeholder="none"
          hint="Signs of one currency, for example $, USD."
          value={currency}
          onInput={(event) => {
            const { value: now } = event.currentTarget;
            setCurrency(now);
            put({
              currency: now
                .split(",")
                .map((one) => one.trim())
                .filter((one) => one !== ""),
            });
          }}
        />
        <SelectField
          label="Negative numbers"
          value={text(format.negative) || "minus"}
          onChange={(event) => put({ negative: event.currentTarget.value })}
        >
          <option value="minus">-95.00</option>
          <option value="parentheses">(95.00)</option>
          <option value="trailing_minus">95.00-</option>
        </SelectField>
        {!/^u?int/.test(type) && (
          <Checkbox
            label="Percentages: 12.5% is 0.125"
            checked={format.percent === true}
            onChange={(event) => put({ percent: event.currentTarget.checked })}
          />
        )}
      </div>
    </details>
  );
}

/** The first different cells and their values; those that can't be read come first. */
export function pairsOf(columns: readonly { name: string }[], rows: readonly Cell[][], name: string): [string, Cell][] {
  const [raw, value] = [RAW, name].map((wanted) => columns.findIndex((one) => one.name === wanted));
  const pairs = new Map(rows.map((row) => [row[raw ?? -1], row[value ?? -1] ?? null] as const));
  return [...pairs]
    .filter((pair): pair is [string, Cell] => typeof pair[0] === "string")
    .sort(([, a], [, b]) => Number(a !== null) - Number(b !== null))
    .slice(0, EXAMPLES_MAX);
}

/** Cells of a file with the values that they are read as. `mapping`, `column`: as edited. */
export function Examples(props: {
  slug: string;
  config: StoredConfig;
  mapping: StoredMapping;
  column: Members;
  file: string;
}) {
  const { slug, config, mapping, column, file } = props;
  const draft = { ...config, mappings: [exampleMapping(mapping, column)] };
  const { previews, stale } = usePreviews(slug, text(mapping.table), [file], draft, ROWS_READ);
  const { columns, rows } = previews[0] ?? {};
  const pairs = pairsOf(columns ?? [], (rows ?? []) as Cell[][], text(column.name));
  if (pairs.length === 0) return null;
  return (
    <table class="column-examples" aria-busy={stale}>
      <caption class="for-readers">Cells and their values</caption>
      <tbody>
        {pairs.map(([raw, value]) => (
          <tr key={raw}>
            <th scope="row">
              <code>{raw === "" ? "(empty)" : raw}</code>
            </th>
            <td>→ {value === null ? <span class="column-unread">can’t be read</span> : <code>{plain(value)}</code>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
