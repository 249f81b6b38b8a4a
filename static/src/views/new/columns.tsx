import { ChevronDown, ChevronRight, TriangleAlert } from "lucide-preact";
import { useState } from "preact/hooks";
import { IconButton } from "../../components/button";
import { Checkbox, TextField } from "../../components/field";
import { count, counted, share } from "../../format/number";
import { columnProblems, type DraftColumn } from "./draft";
import { Told } from "./told";

const TYPES = [
  "string",
  "int64",
  "int32",
  "int16",
  "int8",
  "uint64",
  "uint32",
  "uint16",
  "uint8",
  "float64",
  "float32",
  "decimal(18,2)",
  "boolean",
  "date",
  "time",
  "timestamp",
  "timestamptz",
  "uuid",
  "json",
];
const SAMPLES_MAX = 3;

interface Props {
  columns: DraftColumn[];
  /** What the service says of them, by their place among those that are taken in. */
  problems: Map<number, string>;
  locked: boolean;
  onChange: (columns: DraftColumn[]) => void;
}

/** The columns of the table that it becomes. */
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
              <span class="for-readers">Taken in</span>
            </th>
            <th>Column</th>
            <th>Type</th>
            <th class="num">Null</th>
            <th>Values</th>
            <th>
              <span class="for-readers">Evidence</span>
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
  const from = typeof column.from === "number" ? `column ${column.from + 1}` : [column.from].flat().join(", ");
  return (
    <>
      <tr class={included ? "" : "new-left-out"}>
        <td>
          <input
            type="checkbox"
            aria-label={`Take in ${name}`}
            checked={included}
            disabled={locked}
            onChange={(event) => onChange({ ...column, included: event.currentTarget.checked })}
          />
        </td>
        <td>
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
        <td>
          <TypeSelect column={column} locked={locked} onChange={onChange} />
          {evidence?.misfits && column.type !== "string" && (
            <p class="secondary">
              {counted(evidence.misfits.count, "value")} not of it: {evidence.misfits.first.map(misfitWords).join(", ")}
              {evidence.misfits.count > evidence.misfits.first.length && " …"}
            </p>
          )}
        </td>
        <td class="num">{seen > 0 && evidence ? share(evidence.nulls / seen) : <span class="dim">–</span>}</td>
        <td class="secondary new-values" title={evidence?.samples.join("\n")}>
          {evidence?.range ? <span class="mono">{evidence.range}</span> : <Samples samples={evidence?.samples ?? []} />}
        </td>
        <td>
          <div class="row">
            <IconButton
              label={`Evidence for ${name}`}
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
        <tr>
          <td />
          <td colSpan={5}>
            <Evidence column={column} from={from} locked={locked} onChange={onChange} />
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
  const plain = TYPES.map((one): Reading => ({ type: one, formats: [] }));
  const readings = new Map(
    [{ type, formats }, ...others, ...plain].map((one) => [JSON.stringify([one.type, one.formats]), one]),
  );
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
      {[...readings].map(([key, one]) => (
        <option key={key} value={key}>
          {one.formats.length > 0 ? `${one.type} · ${one.formats.join(", ")}` : one.type}
        </option>
      ))}
    </select>
  );
}

function Evidence({
  column,
  from,
  locked,
  onChange,
}: { from: string } & Pick<RowProps, "column" | "locked" | "onChange">) {
  const { evidence, formats, type } = column;
  const timed = /^(date|time|timestamp|timestamptz)$/.test(type);
  return (
    <div class="stack new-evidence">
      <p>
        From <code>{from}</code>.{" "}
        <Told
          text={evidence?.why ?? "Typed by its first cells, since the file is cut differently than was proposed."}
        />
      </p>
      {evidence?.warnings?.map((warning) => (
        <p key={warning}>
          <Told text={warning} />
        </p>
      ))}
      {evidence && (
        <p class="secondary">
          {evidence.distinct_exact ? "" : "More than "}
          {count(evidence.distinct)} different values.
        </p>
      )}
      {evidence && evidence.ruled_out.length > 0 && (
        <ul class="secondary">
          {evidence.ruled_out.map(({ type: other, why }) => (
            <li key={other}>
              <Told text={why} />
            </li>
          ))}
        </ul>
      )}
      <div class="row wrap">
        <Checkbox
          label="May be null"
          checked={column.nullable}
          disabled={locked}
          onChange={(event) => onChange({ ...column, nullable: event.currentTarget.checked })}
        />
      </div>
      {timed && (
        <TextField
          label="Format"
          hint="As in %d.%m.%Y; empty: ISO 8601."
          value={formats[0] ?? ""}
          disabled={locked}
          onChange={(event) => {
            const format = event.currentTarget.value.trim();
            onChange({ ...column, formats: format === "" ? [] : [format, ...formats.slice(1)] });
          }}
        />
      )}
    </div>
  );
}
