import type { ResultColumn, Row } from "../../api/types";
import { counted } from "../../format/number";
import { isNaming } from "../../format/naming";
import { written } from "../../format/values";

/** Limit for screen readers. */
const ROWS_MAX = 50;

/** Table alternative of a chart for screen readers. */
export function AsTable({ label, columns, rows }: { label: string; columns: ResultColumn[]; rows: Row[] }) {
  return (
    <div class="for-readers">
      <table>
        <caption>
          {label}: {counted(rows.length, "row")}
          {rows.length > ROWS_MAX && `, showing the first ${ROWS_MAX}`}
        </caption>
        <thead>
          <tr>
            {columns.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, ROWS_MAX).map((row, at) => (
            <tr key={at}>
              {columns.map(({ name, type }, column) => (
                <td key={name}>
                  {row[column] === null
                    ? "null"
                    : written(row[column], isNaming(name, type) ? "text" : undefined, type)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
