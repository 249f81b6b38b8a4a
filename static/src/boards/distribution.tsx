import type { Cell } from "../api/types";
import { count, counted, share } from "../format/number";
import { EMPTY, familyOf, numberWritten, plain, timeWritten, written } from "../format/values";
import { scaleOf, type Summary } from "./summary";
import "./distribution.css";

/** A bound of a column in words. */
export function boundText(value: number | undefined, type: string, format?: string): string {
  if (value === undefined) return "–";
  if (familyOf(type) !== "time") return numberWritten(value, format);
  return timeWritten(value, type.toLowerCase() === "date" ? "date" : /^timestamp/i.test(type) ? "datetime" : "time");
}

/** Histogram of a column on a scale, else its most frequent values. */
export function Distribution({ summary, isPercent }: { summary: Summary; isPercent?: boolean }) {
  const { name, type, bins, top, distinct, rows, nulls, min = 0, max = 0 } = summary;
  const format = isPercent ? "percentage" : undefined;
  if (bins.length > 0) {
    const most = Math.max(...bins, 1);
    const width = scaleOf(summary)?.width ?? 0;
    const text = `${name} from ${boundText(min, type, format)} to ${boundText(max, type, format)}`;
    return (
      <span class="dist" role="img" aria-label={`Histogram of ${text}`} title={text}>
        {bins.map((size, at) => {
          const edge = (step: number) => boundText(min + width * step, type, format);
          const range = width === 1 && max - min + 1 === bins.length ? edge(at) : `${edge(at)} to ${edge(at + 1)}`;
          return (
            <span
              key={at}
              class={size === 0 ? "none" : ""}
              style={{ height: `${size === 0 ? 0 : Math.max(4, (size / most) * 100)}%` }}
              title={`${range}: ${counted(size, "row")}`}
            />
          );
        })}
      </span>
    );
  }
  if (top.length > 0) {
    const text = (value: Cell) => written(value, format ?? "text");
    return (
      <span class="dist-top">
        {top.map((one) => (
          <span key={plain(one.value)} title={`${text(one.value)}: ${counted(one.count, "row")}`}>
            <span class="cut">{text(one.value) || EMPTY}</span>
            <span class="num dim">{share(one.count / Math.max(1, rows))}</span>
          </span>
        ))}
        {distinct > top.length && <span class="dim">and {count(distinct - top.length)} more</span>}
      </span>
    );
  }
  if (rows > 0 && nulls === rows) return <span class="dim">all null</span>;
  return <span class="dim">{distinct > 0 ? "mostly distinct values" : "–"}</span>;
}
