import { SelectField } from "../../components/field";
import { isNumeric, numberWritten } from "../../format/values";
import {
  addsUp,
  AGGREGATES,
  type Aggregate,
  type ChartChoice,
  type Dimension,
  FORMATS,
  type Grain,
  GRAINS,
  type Kind,
  KINDS,
} from "./choice";
import { type Known, withAggregate, withBy, withKind, withMeasure, without, withSplit } from "./change";
import { binOf, grainsOf } from "./pick";

const TOPS = [5, 10, 20, 50];
const SORTS = { value: "Largest first", ascending: "Smallest first", name: "By name" } as const;
const ON_TABLES: Aggregate[] = ["count", "sum", "avg", "median", "min", "max", "distinct"];

interface ChoiceProps {
  label: string;
  value: string;
  options: readonly (readonly [value: string, text: string])[];
  onPick: (value: string) => void;
}

function Choice({ label, value, options, onPick }: ChoiceProps) {
  return (
    <SelectField label={label} value={value} onChange={(event) => onPick(event.currentTarget.value)}>
      {options.map(([one, text]) => (
        <option key={one} value={one}>
          {text}
        </option>
      ))}
    </SelectField>
  );
}

interface Props {
  choice: ChartChoice;
  known: Known;
  onChange: (choice: ChartChoice) => void;
}

const named = (names: readonly string[]) => names.map((name) => [name, name] as const);

/** Chooses how many values are shown, and whether the others are grouped. */
function TopValues({ label, choice, of, onChange }: Omit<Props, "known"> & { label: string; of: "by" | "split" }) {
  const own = choice[of];
  if (!own || own.grain !== undefined || own.bin !== undefined) return null;
  const others = choice.others !== false;
  const value = own.top === undefined ? "" : `${own.top}${others ? "+" : ""}`;
  const tops = own.top === undefined || TOPS.includes(own.top) ? TOPS : [...TOPS, own.top].sort((a, b) => a - b);
  const options = tops.flatMap((top) => [
    [`${top}+`, `Top ${top} + Other`] as const,
    [String(top), `Top ${top} only`] as const,
  ]);
  const pick = (text: string) => {
    const next: Dimension = { column: own.column, type: own.type, ...(text ? { top: Number.parseInt(text, 10) } : {}) };
    onChange({ ...choice, [of]: next, ...(text ? { others: text.endsWith("+") } : {}) });
  };
  return <Choice label={label} value={value} options={[["", "All values"], ...options]} onPick={pick} />;
}

function Unit({ choice, known, onChange }: Props) {
  const { by } = choice;
  if (!by || choice.aggregate === "none" || choice.kind === "scatter") return null;
  if (/^(?:date|timestamp)/i.test(by.type)) {
    const options = [
      ...grainsOf(by.type).map((grain) => [grain, GRAINS[grain]] as const),
      ["", "Exact value"] as const,
    ];
    const pick = (grain: string) => {
      const next: Dimension = { column: by.column, type: by.type, ...(grain ? { grain: grain as Grain } : {}) };
      onChange({ ...choice, by: next, sort: "name" });
    };
    return <Choice label="Time unit" value={by.grain ?? ""} options={options} onPick={pick} />;
  }
  if (!isNumeric(by.type)) return null;
  const profile = known.profile.columns.find(({ name }) => name === by.column);
  const base = by.bin ?? (profile && binOf(profile));
  if (base === undefined) return null;
  const widths = [base / 5, base / 2, base, base * 2, base * 5].map((one) => Number(one.toPrecision(6)));
  const options = [
    ...widths.map(
      (one) => [String(one), profile?.unit === "percent" ? numberWritten(one, "percentage") : String(one)] as const,
    ),
    ["", "Exact values"] as const,
  ];
  const pick = (bin: string) => {
    const next: Dimension = { column: by.column, type: by.type, ...(bin ? { bin: Number(bin) } : {}) };
    onChange({ ...choice, by: next, sort: "name" });
  };
  return (
    <Choice label="Bin width" value={by.bin === undefined ? "" : String(by.bin)} options={options} onPick={pick} />
  );
}

function Measure({ choice, known, onChange }: Props) {
  const { aggregate, measure = "" } = choice;
  const isScatter = choice.kind === "scatter";
  const plain = "sql" in choice.source && choice.kind !== "number";
  const offered = choice.kind === "table" || plain ? [...ON_TABLES, "none" as const] : ON_TABLES;
  const isAny = aggregate === "distinct" || (aggregate === "none" && !isScatter && choice.kind === "table");
  const columns = known.columns.filter(({ type }) => isAny || isNumeric(type)).map(({ name }) => name);
  const several = choice.more && choice.more.length > 0 ? [measure, ...choice.more].join(", ") : undefined;
  const names = columns.includes(measure) || measure === "" ? columns : [measure, ...columns];
  const isRows = choice.kind === "table" && aggregate === "none";
  return (
    <>
      {!isScatter && (
        <Choice
          label="Measure"
          value={aggregate}
          options={offered.map((one) => [one, AGGREGATES[one]] as const)}
          onPick={(one) => onChange(withAggregate(choice, one as Aggregate, known))}
        />
      )}
      {(isScatter || (aggregate !== "count" && !isRows)) && (
        <Choice
          label={isScatter ? "Y axis" : aggregate === "none" ? "Values" : "Of column"}
          value={several ?? measure}
          options={[...(several === undefined ? [] : [[several, several] as const]), ...named(names)]}
          onPick={(name) => name !== several && onChange(withMeasure(choice, name, known))}
        />
      )}
    </>
  );
}

const AXIS_LABELS: Partial<Record<Kind, string>> = { pie: "Slices", table: "Group by", pivot: "Rows" };
const SPLIT_SHOWN: Partial<Record<Kind, string>> = { heatmap: "Show in Y", pivot: "Show in columns" };
const SPLIT_LABELS: Partial<Record<Kind, string>> = { heatmap: "Y axis", pivot: "Columns" };

/** Fields that make up a chart. */
export function Fields({ choice, known, onChange }: Props) {
  const { kind, by, split, aggregate } = choice;
  const names = known.columns.map(({ name }) => name);
  const isRows = kind === "table" && aggregate === "none";
  const isGrouped = kind !== "number" && !isRows;
  const withoutBy = kind === "table" ? ([["", "None"]] as const) : [];
  const numbers = known.columns.filter(
    ({ type }) => kind !== "scatter" || isNumeric(type) || /^(?:date|time)/i.test(type),
  );
  const splits = names.filter((name) => name !== by?.column && !(aggregate === "none" && name === choice.measure));
  return (
    <div class="build-fields" role="group" aria-label="Chart settings">
      <Choice
        label="Chart"
        value={kind}
        options={Object.entries(KINDS)}
        onPick={(one) => onChange(withKind(choice, one as Kind, known))}
      />
      <Measure choice={choice} known={known} onChange={onChange} />
      {isGrouped && (
        <Choice
          label={AXIS_LABELS[kind] ?? "X axis"}
          value={by?.column ?? ""}
          options={[...withoutBy, ...named(numbers.map(({ name }) => name))]}
          onPick={(name) => onChange(withBy(choice, name, known))}
        />
      )}
      {isGrouped && <Unit choice={choice} known={known} onChange={onChange} />}
      {isGrouped && kind !== "scatter" && aggregate !== "none" && (
        <TopValues label="Show" of="by" choice={choice} onChange={onChange} />
      )}
      {isGrouped && kind !== "pie" && (
        <Choice
          label={SPLIT_LABELS[kind] ?? "Split by"}
          value={split?.column ?? ""}
          options={[...(kind === "heatmap" ? [] : [["", "None"] as const]), ...named(splits)]}
          onPick={(name) => onChange(withSplit(choice, name, known))}
        />
      )}
      {isGrouped && kind !== "scatter" && aggregate !== "none" && kind !== "pie" && (
        <TopValues label={SPLIT_SHOWN[kind] ?? "Show in split"} of="split" choice={choice} onChange={onChange} />
      )}
      {isGrouped &&
        by &&
        aggregate !== "none" &&
        kind !== "scatter" &&
        by.grain === undefined &&
        by.bin === undefined && (
          <Choice
            label="Sort"
            value={choice.sort ?? "value"}
            options={Object.entries(SORTS)}
            onPick={(sort) => onChange({ ...choice, sort: sort as keyof typeof SORTS })}
          />
        )}
      {kind === "pivot" && addsUp(choice) && (
        <Choice
          label="Totals"
          value={choice.totals ? "shown" : ""}
          options={[
            ["", "None"],
            ["shown", "Shown"],
          ]}
          onPick={(shown) => onChange(shown ? { ...choice, totals: true } : without(choice, "totals"))}
        />
      )}
      {!isRows && (
        <Choice
          label="Format"
          value={choice.format ?? ""}
          options={[["", "Automatic"], ...Object.entries(FORMATS)]}
          onPick={(format) => onChange(format ? { ...choice, format } : without(choice, "format"))}
        />
      )}
    </div>
  );
}
