import { useMemo } from "preact/hooks";
import type { ResultColumn, Row } from "../../api/types";
import { counted } from "../../format/number";
import { textsOf } from "./columns";
import type { ChartSpec } from "./spec";

/** Limit for screen readers. */
const ROWS_MAX = 50;

interface Props {
  label: string;
  spec: ChartSpec;
  columns: ResultColumn[];
  rows: Row[];
}

/** Table alternative of a chart for screen readers, with the chart's titles and labels. */
export function AsTable({ label, spec, columns, rows }: Props) {
  const texts = useMemo(() => textsOf(spec, columns, rows), [spec, columns, rows]);
  return (
    <div class="for-readers">
      <table>
        <caption>
          {label}: {counted(rows.length, "row")}
          {rows.length > ROWS_MAX && `, showing the first ${ROWS_MAX}`}
        </caption>
        <thead>
          <tr>
            {texts.map(({ name }, at) => (
              <th key={at} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, ROWS_MAX).map((row, at) => (
            <tr key={at}>
              {texts.map(({ textOf }, column) => (
                <td key={column}>{textOf(row[column])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
