import { ChevronDown, ChevronRight, TriangleAlert } from "lucide-preact";
import { useState } from "preact/hooks";
import { COLUMN_TYPES } from "../../api/rules";
import { IconButton } from "../../components/button";
import { Checkbox, TextField } from "../../components/field";
import { count, counted, share } from "../../format/number";
import { patternOf, strftimeOf } from "../../format/time-pattern";
import { typeWithName } from "../../format/types";
import { columnProblems, type DraftColumn } from "./draft";
import { MessageText } from "../../components/message-text";

/** Types that are offered first. */
const COMMON = ["string", "int64", "decimal(18,2)", "date", "timestamp", "boolean"];
const SAMPLES_MAX = 3;

interface Props {
  columns: DraftColumn[];
  /** The service's problems, by index among the included columns. */
  problems: Map<number, string>;
  locked: boolean;
  onChange: (columns: DraftColumn[]) => void;
}

/** Columns of the new table. */
export function ColumnsStep({ columns, problems, locked, onChange }: Props) {
  const [open, setOpen] = useState<number>();
  const own = columnProblems(columns);
  const put = (column: DraftColumn) => onChange(columns.map((one) => (one.id === column.id ? column : one)));
  return (
    <div class="table-box new-columns">
      <table class="table">
        <thead>
          <tr>
            <th>
              <span class="for-readers">Include</span>
            </th>
            <th>Column</th>
            <th>Type</th>
            <th class="num">Nulls</th>
            <th>Values</th>
            <th>
              <span class="for-readers">Why</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {columns.map((column) => (
            <ColumnRows
              key={column.id}
              column={column}
              problem={own.get(column.id) ?? problems.get(column.id)}
              open={open === column.id}
              locked={locked}
              onOpen={() => setOpen(open === column.id ? undefined : column.id)}
              onChange={put}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

const misfitWords = ({ line, value }: { line: number; value: string }) => `line ${count(line)} “${value}”`;

interface RowProps {
  column: DraftColumn;
  problem: string | undefined;
  open: boolean;
  locked: boolean;
  onOpen: () => void;
  onChange: (column: DraftColumn) => void;
}

function ColumnRows({ column, problem, open, locked, onOpen, onChange }: RowProps) {
  const { name, evidence, included } = column;
  const warnings = evidence?.warnings ?? [];
  const seen = evidence ? evidence.values + evidence.nulls : 0;
  const [proposed] = useState(column.type);
  // Shows the format where one exists or may be needed.
  const shown = isTimed(column) && (column.formats.length > 0 || column.type !== proposed);
  const from = typeof column.from === "number" ? `column ${column.from + 1}` : [column.from].flat().join(", ");
  return (
    <>
      <tr class={included ? "new-column" : "new-column new-left-out"} data-column={column.id}>
        <td>
          <input
            type="checkbox"
            aria-label={`Include ${name}`}
            checked={included}
            disabled={locked}
            onChange={(event) => onChange({ ...column, included: event.currentTarget.checked })}
          />
        </td>
        <td class="new-name">
          <input
            class="input mono"
            aria-label={`Name of ${from}`}
            title={`From ${from}`}
            value={name}
            disabled={locked || !included}
            aria-invalid={problem ? true : undefined}
            onInput={(event) => onChange({ ...column, name: event.currentTarget.value })}
          />
          {problem && (
            <p class="field-error" role="alert">
              {problem}
            </p>
          )}
        </td>
        <td class="new-type">
          <TypeSelect column={column} locked={locked} onChange={onChange} />
          {shown && <FormatField column={column} locked={locked} onChange={onChange} bare />}
          {evidence?.misfits && column.type !== "string" && (
            <p class="secondary">
              {counted(evidence.misfits.count, "value")} of another type:{" "}
              {evidence.misfits.first.map(misfitWords).join(", ")}
              {evidence.misfits.count > evidence.misfits.first.length && " …"}
            </p>
          )}
        </td>
        <td class="num" data-label="Nulls">
          {seen > 0 && evidence ? share(evidence.nulls / seen) : <span class="dim">–</span>}
        </td>
        <td class="secondary new-values" title={evidence?.samples.join("\n")}>
          {evidence?.range ? <span class="mono">{evidence.range}</span> : <Samples samples={evidence?.samples ?? []} />}
        </td>
        <td>
          <div class="row">
            <IconButton
              label={`Details of ${name}`}
              aria-expanded={open}
              icon={open ? <ChevronDown /> : <ChevronRight />}
              onClick={onOpen}
            />
            {warnings.length > 0 && (
              <span class="new-warning" title={warnings.join("\n")}>
                <TriangleAlert aria-label="Warning" />
              </span>
            )}
          </div>
        </td>
      </tr>
      {open && (
        <tr class="new-evidence-row">
          <td />
          <td colSpan={5}>
            <Evidence column={column} from={from} formatShown={shown} locked={locked} onChange={onChange} />
          </td>
        </tr>
      )}
    </>
  );
}

function Samples({ samples }: { samples: string[] }) {
  return (
    <>
      {samples.slice(0, SAMPLES_MAX).map((sample, at) => (
        <code key={at} class="new-sample">
          {sample}
        </code>
      ))}
    </>
  );
}

type Reading = Pick<DraftColumn, "type" | "formats">;

function TypeSelect({ column, locked, onChange }: Pick<RowProps, "column" | "locked" | "onChange">) {
  const { type, formats, evidence } = column;
  const others = (evidence?.alternatives ?? []).map((one): Reading => ({ type: one.type, formats: one.formats ?? [] }));
  const plain = (types: readonly string[]) => types.map((one): Reading => ({ type: one, formats: [] }));
  const byKey = (list: Reading[]) => new Map(list.map((one) => [JSON.stringify([one.type, one.formats]), one]));
  const first = byKey([{ type, formats }, ...others, ...plain(COMMON)]);
  const readings = new Map([...first, ...byKey(plain(COLUMN_TYPES))]);
  const options = [...readings].map(([key, one]) => (
    <option key={key} value={key}>
      {[typeWithName(one.type), ...one.formats.map(patternOf)].join(" · ")}
    </option>
  ));
  return (
    <select
      class="input mono"
      aria-label={`Type of ${column.name}`}
      title={evidence?.why}
      value={JSON.stringify([type, formats])}
      disabled={locked || !column.included}
      onChange={(event) => {
        const chosen = readings.get(event.currentTarget.value);
        if (chosen) onChange({ ...column, ...chosen });
      }}
    >
      {options.slice(0, first.size)}
      <optgroup label="More types">{options.slice(first.size)}</optgroup>
    </select>
  );
}

const isTimed = ({ type }: DraftColumn): boolean => /^(date|time|timestamp|timestamptz)$/.test(type);

const FORMAT_HINT = "Format of the values, for example DD.MM.YYYY or %d.%m.%Y. Empty: like 2025-02-01 13:45.";

/** Format of the values. `bare`: within the row, with a hidden label. */
function FormatField({
  column,
  bare,
  locked,
  onChange,
}: { bare?: boolean } & Pick<RowProps, "column" | "locked" | "onChange">) {
  const { formats, name } = column;
  const [first = "", ...others] = formats;
  return (
    <>
      <TextField
        label={bare ? `Format of ${name}` : "Format"}
        bare={bare ?? false}
        class="mono"
        hint={bare ? undefined : FORMAT_HINT}
        title={FORMAT_HINT}
        placeholder="like 2025-02-01"
        value={patternOf(first)}
        disabled={locked || !column.included}
        onChange={(event) => {
          const format = strftimeOf(event.currentTarget.value.trim());
          onChange({ ...column, formats: format === "" ? others : [format, ...others] });
        }}
      />
      {others.length > 0 && <p class="secondary mono">or {others.map(patternOf).join(" or ")}</p>}
    </>
  );
}

function Evidence({
  column,
  from,
  formatShown,
  locked,
  onChange,
}: { from: string; formatShown: boolean } & Pick<RowProps, "column" | "locked" | "onChange">) {
  const { evidence } = column;
  return (
    <div class="stack new-evidence">
      <p>
        From <code>{from}</code>.{" "}
        <MessageText
          text={evidence?.why ?? "The type is based on the first values because the CSV settings were changed."}
        />
      </p>
      {evidence?.warnings?.map((warning) => (
        <p key={warning}>
          <MessageText text={warning} />
        </p>
      ))}
      {evidence && (
        <p class="secondary">
          {evidence.distinct_exact ? "" : "More than "}
          {count(evidence.distinct)} distinct values.
        </p>
      )}
      {evidence && evidence.ruled_out.length > 0 && (
        <ul class="secondary">
          {evidence.ruled_out.map(({ type: other, why }) => (
            <li key={other}>
              <MessageText text={why} />
            </li>
          ))}
        </ul>
      )}
      <div class="row wrap">
        <Checkbox
          label="Allow empty cells"
          checked={column.nullable}
          disabled={locked}
          onChange={(event) => onChange({ ...column, nullable: event.currentTarget.checked })}
        />
      </div>
      {isTimed(column) && !formatShown && <FormatField column={column} locked={locked} onChange={onChange} />}
    </div>
  );
}
