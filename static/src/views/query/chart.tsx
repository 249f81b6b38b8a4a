import type { QueryAnswer, ResultColumn } from "../../api/types";
import { Chart, type ChartSpec, type ChartType } from "../../components/chart";
import { SelectField } from "../../components/field";
import { isNumeric } from "../../format/values";
import { stateOf } from "./state";

const TYPES: Record<ChartType, string> = {
  line: "Line",
  area: "Area",
  bar: "Bar",
  pie: "Pie",
  scatter: "Scatter",
  heatmap: "Heatmap",
};

/** Changes the chart type and fills in what the type needs. */
function withType(spec: ChartSpec, type: ChartType, columns: ResultColumn[]): ChartSpec {
  const { x, y, series } = spec;
  const base: ChartSpec = { type, x, y, ...(series ? { series } : {}) };
  if (type === "pie") return { type, x, y: y.slice(0, 1) };
  if (type !== "heatmap") return base;
  const numbers = columns.filter(({ type }) => isNumeric(type));
  const other = columns.find((column) => column.name !== x.field && !numbers.includes(column)) ?? numbers[0];
  const value = numbers.find(({ name }) => name !== x.field && name !== other?.name) ?? numbers[0];
  return {
    type,
    x,
    y: other ? [{ field: series ?? other.name }] : y,
    ...(value ? { value: { field: value.name } } : {}),
  };
}

function split(spec: ChartSpec, series: string): ChartSpec {
  const { type, x, y } = spec;
  return series ? { type, x, y, series } : { type, x, y };
}

interface Props {
  slug: string;
  guessed: ChartSpec;
  answer: QueryAnswer;
}

/** Chart of the result, guessed from its columns and adjustable. */
export function ChartPane({ slug, guessed, answer }: Props) {
  const { chart } = stateOf(slug);
  const spec = chart.value ?? guessed;
  const names = answer.columns.map(({ name }) => name);
  const numbers = answer.columns.filter(({ type }) => isNumeric(type)).map(({ name }) => name);
  const several = spec.y.map(({ field }) => field).join(", ");
  const change = (next: Partial<ChartSpec>) => {
    chart.value = { ...spec, ...next };
  };
  const choice = (label: string, value: string, options: string[], onPick: (name: string) => void, none?: string) => (
    <SelectField label={label} value={value} onChange={(event) => onPick(event.currentTarget.value)}>
      {none !== undefined && <option value="">{none}</option>}
      {options.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </SelectField>
  );
  const heat = spec.type === "heatmap";
  return (
    <div class="query-chart">
      <div class="query-chooser">
        <SelectField
          label="Chart"
          value={spec.type}
          onChange={(event) => {
            chart.value = withType(spec, event.currentTarget.value as ChartType, answer.columns);
          }}
        >
          {Object.entries(TYPES).map(([type, name]) => (
            <option key={type} value={type}>
              {name}
            </option>
          ))}
        </SelectField>
        {choice(spec.type === "pie" ? "Slices" : "X axis", spec.x.field, names, (field) => change({ x: { field } }))}
        {choice(
          heat ? "Down" : "Values",
          several,
          spec.y.length > 1 ? [several, ...numbers] : heat ? names : numbers,
          (field) => field !== several && change({ y: [{ field }] }),
        )}
        {heat
          ? choice("Colour", spec.value?.field ?? "", numbers, (field) => change({ value: { field } }))
          : spec.type !== "pie" &&
            choice(
              "Split by",
              spec.series ?? "",
              names.filter((name) => name !== spec.x.field && !spec.y.some(({ field }) => field === name)),
              (series) => {
                chart.value = split(spec, series);
              },
              "nothing",
            )}
      </div>
      <div class="query-drawing">
        <Chart
          label={`${several} by ${spec.x.field}`}
          spec={spec}
          columns={answer.columns}
          rows={answer.rows as never}
          height={320}
        />
      </div>
    </div>
  );
}
