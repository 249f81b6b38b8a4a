import { useMemo, useRef } from "preact/hooks";
import type { ResultColumn, Row } from "../../api/types";
import { useSideScroll } from "../side-scroll";
import { EMPTY } from "../../format/values";
import { NO_VALUE, pivotOf, type PivotSpec, TOTAL } from "./layout";
import "./pivot.css";

export type { PivotSpec } from "./layout";

interface Props {
  label: string;
  spec: PivotSpec;
  columns: ResultColumn[];
  rows: Row[];
  /** Whether the result has more rows. */
  isCut?: boolean;
}

const quiet = (text: string) => (text === EMPTY || text === NO_VALUE ? <span class="dim">{text}</span> : text);

/** A pivot table of a result that is grouped by its rows and columns. */
export function Pivot({ label, spec, columns, rows, isCut = false }: Props) {
  const pivot = useMemo(() => pivotOf(spec, columns, rows, isCut), [spec, columns, rows, isCut]);
  const height = Math.max(1, pivot.head.length);
  const box = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  useSideScroll(box, scroller);
  return (
    <div ref={box} class="pivot-box">
      <div ref={scroller} class="pivot" tabIndex={0} role="region" aria-label={`${label}, scrolls`}>
        <table class="table">
          <thead>
            {(pivot.head.length > 0 ? pivot.head : [[]]).map((level, at) => (
              <tr key={at}>
                {at === 0 &&
                  pivot.sides.map((name) => (
                    <th key={name} scope="col" rowSpan={height}>
                      {name}
                    </th>
                  ))}
                {level.map(({ text, span }, index) => (
                  <th key={index} scope={span > 1 ? "colgroup" : "col"} colSpan={span} class="num">
                    {quiet(text)}
                  </th>
                ))}
              </tr>
            ))}
          </thead>
          <tbody>
            {pivot.rows.map((row, at) => (
              <tr key={at}>
                {row.side.map((text, index) => (
                  <th key={index} scope="row" class={index < row.same ? "pivot-same" : ""}>
                    {quiet(text)}
                  </th>
                ))}
                {row.cells.map((text, index) => (
                  <td key={index} class={index < row.cells.length - pivot.totals ? "num" : "num pivot-total"}>
                    {quiet(text)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
          {pivot.foot && (
            <tfoot>
              <tr>
                <th scope="row" colSpan={pivot.sides.length}>
                  {TOTAL}
                </th>
                {pivot.foot.map((text, index) => (
                  <td key={index} class="num">
                    {text}
                  </td>
                ))}
              </tr>
            </tfoot>
          )}
        </table>
        {pivot.notes.length > 0 && <p class="dim">{pivot.notes.join(" ")}</p>}
      </div>
    </div>
  );
}
