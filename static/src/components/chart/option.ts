/** Converts a shape to ECharts options. Tooltips are rich text, never markup. */
import type { EChartsCoreOption } from "echarts/core";
import { share } from "../../format/number";
import { axisWritten, EMPTY, numberWritten, timeWritten } from "../../format/values";
import { shownColours, slotsOf } from "./colours";
import type { Axis } from "./columns";
import { labelsBelow, labelsBeside } from "./labels";
import { labelDistanceMin, labelledUnits } from "./steps";
import { type ChartTheme, TEXT_PX } from "./theme";
import { type Line, POINTS_MAX, type Shape } from "./shape";
import type { ChartSpec } from "./spec";

const NAME_CHARS_MAX = 40;
/** Below this width, in pixels, the legend isn't placed at the side. */
const NARROW_PX = 420;
const POINT_PX: [number, number] = [5, 26];
const SYMBOLS_MAX = 60;
const LABELLED_CELLS_MAX = 80;
/** Points from which on a scatter is drawn more transparent. */
const DENSE_POINTS_MIN = 1_000;

interface TipItem {
  seriesName?: string;
  seriesIndex?: number;
  dataIndex?: number;
  name?: string;
  marker?: unknown;
  value?: unknown;
  percent?: number;
  axisValue?: string | number;
  axisValueLabel?: string;
}

/** ECharts reads braces as style markup; a word joiner escapes them. */
const safe = (text: string): string => text.replaceAll("{", "{\u2060");
const short = (text: string): string => (text.length > NAME_CHARS_MAX ? `${text.slice(0, NAME_CHARS_MAX - 1)}…` : text);
const marker = (item: TipItem): string => (typeof item.marker === "string" ? item.marker : "");

export function optionOf(
  shape: Exclude<Shape, { kind: "none" }>,
  spec: ChartSpec,
  look: ChartTheme,
): EChartsCoreOption {
  const base = {
    color: look.series,
    animation: !look.still,
    animationDuration: 120,
    animationDurationUpdate: 120,
    useUTC: true,
    textStyle: { fontFamily: look.font, fontSize: TEXT_PX, color: look.text },
    aria: { enabled: false },
  };
  switch (shape.kind) {
    case "lines":
      return { ...base, ...linesOption(shape, spec, look) };
    case "parts":
      return { ...base, ...partsOption(shape, spec, look) };
    case "points":
      return { ...base, ...pointsOption(shape, look) };
    case "cells":
      return { ...base, ...cellsOption(shape, look) };
  }
}

const tooltip = (look: ChartTheme, more: object) => ({
  renderMode: "richText",
  confine: true,
  transitionDuration: 0,
  backgroundColor: look.surface,
  borderColor: look.strong,
  borderWidth: 1,
  borderRadius: 6,
  padding: [6, 10],
  textStyle: { color: look.text, fontFamily: look.font, fontSize: TEXT_PX },
  ...more,
});

/** Legend of the names that fit (`named`). */
const legend = (look: ChartTheme, { data, ...more }: { data: string[]; [name: string]: unknown }) => ({
  type: "plain",
  right: 0,
  top: 0,
  left: 0,
  itemWidth: 14,
  itemHeight: 8,
  itemGap: LEGEND_ROW_PX - TEXT_PX,
  icon: "roundRect",
  // Without a line height, that of the browser's font decides on the height of a row.
  textStyle: { color: look.dim, fontSize: TEXT_PX, lineHeight: TEXT_PX, padding: [0, 6, 0, 0] },
  inactiveColor: look.strong,
  formatter: short,
  data: data.map((name) => (name === EMPTY ? { name, textStyle: QUIET } : name)),
  ...more,
});
/** Looks of the label of a group without a value. */
const QUIET = { fontStyle: "italic" };

/** Sizes of a legend row, and of an entry without its name, in pixels. */
const LEGEND_ROW_PX = 20;
const ITEM_PX = 34;
const LEGEND_ROWS_MAX = 3;
/** Grouped parts listed in the tooltip; the panel's data has all. */
const OTHERS_LISTED_MAX = 12;
/** Legend rows below a pie. */
const PIE_ROWS_MAX = 5;
/** Legend entries beside a pie, the largest parts first. */
const SIDE_NAMES_MAX = 10;

/** Names that fit into the legend rows, in order, and the rows used. */
function named(names: string[], { width, measure }: ChartTheme, rowsMax: number): { data: string[]; rows: number } {
  const data: string[] = [];
  let [rows, used] = [1, 0];
  for (const name of new Set(names)) {
    const wide = ITEM_PX + measure(short(name));
    if (used > 0 && used + wide > width) [rows, used] = [rows + 1, 0];
    if (rows > rowsMax) return { data, rows: rowsMax };
    used += wide;
    data.push(name);
  }
  return { data, rows };
}

/** Margins for axes, labels, legend and the name of the y axis. */
const grid = (legendRows: number) => ({
  left: 4,
  right: 12,
  top: 8 + (legendRows > 0 ? legendRows * LEGEND_ROW_PX + 4 : 0),
  bottom: 4,
  outerBoundsMode: "same",
  outerBoundsContain: "all",
});

/** Label of a time tick: the most significant part that changes. */
function tick(ms: number, { isLong, isShort }: Pick<Axis, "isLong" | "isShort">): string {
  const time = new Date(ms);
  if (ms % 60_000 !== 0) return timeWritten(ms, "time");
  if (time.getUTCHours() + time.getUTCMinutes() > 0) return clock.format(ms);
  if (time.getUTCDate() > 1 || isShort) return monthDay.format(ms);
  if (time.getUTCMonth() > 0) return monthOnly.format(ms);
  return timeWritten(ms, isLong ? "year" : "month");
}
const clock = new Intl.DateTimeFormat(undefined, { timeZone: "UTC", hour: "2-digit", minute: "2-digit" });
const monthDay = new Intl.DateTimeFormat(undefined, { timeZone: "UTC", month: "short", day: "numeric" });
const monthOnly = new Intl.DateTimeFormat(undefined, { timeZone: "UTC", month: "short" });

/** Tooltip text of an axis value. */
function tooltipValue(axis: Axis, value: number | string): string {
  if (axis.kind === "category") return axis.labels[Number(value)] ?? String(value);
  return axis.kind === "time" ? timeWritten(Number(value), axis.format) : numberWritten(Number(value), axis.format);
}

/** Room that the other axis and the margins take, in pixels. */
const BESIDE_PX = 72;
const BELOW_PX = 48;

/** The text, cut to a width; lines of broken texts fit already. */
function cutTo(text: string, width: number, measure: ChartTheme["measure"]): string {
  if (text.includes("\n") || measure(text) <= width) return text;
  let length = text.length;
  while (length > 1 && measure(`${text.slice(0, length)}…`) > width) length -= 1;
  return `${text.slice(0, length).trimEnd()}…`;
}

/** Labels of a category axis: all of few, and as many as fit of many. */
function categoryLabels(labels: string[], look: ChartTheme, isVertical: boolean): Record<string, unknown> {
  const { width, height, measure } = look;
  const { texts, rotate, ...placed } = isVertical
    ? labelsBeside(labels, { length: height - BELOW_PX, depth: width })
    : labelsBelow(labels, { length: width - BESIDE_PX, depth: height, measure });
  return {
    // With a width of its own, a short label would take the room of a long one.
    formatter: (label: string, at: number) => cutTo(texts[at] ?? label, placed.width, measure),
    rotate,
    hideOverlap: placed.isSparse,
    ...(placed.isSparse ? {} : { interval: 0 }),
  };
}

/** Room between two labels of times, in pixels. */
const TICK_GAP_PX = 16;

/** Ticks of months, quarters or years only, evenly, as many as have room for their labels. */
function unitTicks(axis: Axis, look: ChartTheme, label: object): object {
  const units = axis.units ?? [];
  const isMonth = axis.format !== "quarter" && axis.format !== "year";
  const text = (ms: number) => (isMonth ? tick(ms, axis) : timeWritten(ms, axis.format));
  const widest = Math.max(...units.slice(0, 24).map((ms) => look.measure(text(ms))), 1);
  const customValues = labelledUnits(units, Math.floor((look.width - BESIDE_PX) / (widest + TICK_GAP_PX)));
  // The first label says the year, even if it isn't in January.
  const isFirst = (ms: number) => ms === customValues[0] && new Date(ms).getUTCMonth() > 0;
  const formatter = (ms: number) => (isFirst(ms) && isMonth ? timeWritten(ms, "month") : text(ms));
  return { axisTick: { show: false, customValues }, axisLabel: { formatter, customValues, ...label } };
}

/** Height of a line of labels, in pixels. Without it, lines lie upon each other, and labels on the axis' name. */
const LABEL_LINE_PX = 14;
/** Room between the labels of an axis and its name, in pixels. */
const NAME_GAP_PX = 2;

type AxisLook = Record<string, unknown> & { isVertical?: boolean };

function axisOption(axis: Axis, look: ChartTheme, { isVertical = false, ...more }: AxisLook = {}): object {
  const label = {
    color: look.dim,
    fontSize: TEXT_PX,
    lineHeight: LABEL_LINE_PX,
    hideOverlap: true,
    ...((more.axisLabel as object) ?? {}),
  };
  const shared = {
    name: short(axis.name),
    nameTextStyle: {
      color: look.dim,
      fontSize: TEXT_PX,
      lineHeight: LABEL_LINE_PX,
      padding: [NAME_GAP_PX, 0, 0, 0],
    },
    axisLine: { lineStyle: { color: look.strong } },
    axisTick: { show: false },
    splitLine: { show: axis.kind === "number", lineStyle: { color: look.line } },
    ...more,
  };
  switch (axis.kind) {
    case "category":
      return {
        ...shared,
        type: "category",
        data: axis.labels.map((value) => (value === EMPTY ? { value, textStyle: QUIET } : value)),
        axisLabel: { ...label, ...categoryLabels(axis.labels, look, isVertical) },
      };
    case "time":
      return {
        ...shared,
        type: "time",
        ...(axis.step ? { minInterval: labelDistanceMin(axis.step) } : {}),
        ...(axis.units
          ? unitTicks(axis, look, label)
          : { axisLabel: { formatter: (ms: number) => tick(ms, axis), ...label } }),
      };
    case "number":
      return {
        scale: true,
        ...shared,
        type: "value",
        axisLabel: { formatter: (value: number) => axisWritten(value, axis.format), ...label },
      };
  }
}

const axisNameMiddle = { nameLocation: "middle", nameGap: 8 };
/** Axis name above the axis, aligned with its labels. */
const axisNameAbove = { nameLocation: "end", nameGap: 12, axisLine: { show: false } };

function linesOption(shape: Extract<Shape, { kind: "lines" }>, spec: ChartSpec, look: ChartTheme): object {
  const isBar = spec.type === "bar";
  const horizontal = isBar && spec.horizontal === true;
  // Of a split that a filter leaves one value of, the legend says which.
  const many = shape.lines.length > 1 || (spec.series !== undefined && shape.lines.length > 0);
  const names = named(
    shape.lines.map(({ name }) => name),
    look,
    LEGEND_ROWS_MAX,
  );
  const places = shape.x.kind === "time" ? { ...shape.x, name: spec.x.title ?? "" } : shape.x;
  const x = axisOption(
    places,
    look,
    horizontal ? { isVertical: true, inverse: true, ...axisNameAbove } : { ...axisNameMiddle, boundaryGap: isBar },
  );
  // Bars, areas and counts start at zero; other lines only if their values are not all far from it.
  const y = axisOption(shape.y, look, {
    ...(horizontal ? axisNameMiddle : { ...axisNameAbove, nameTextStyle: { ...left(look) } }),
    scale: spec.type === "line" && !startsAtZero(shape),
  });
  const slots = slotsOf(
    shape.lines.filter(({ of }) => of === undefined).map(({ name }) => name),
    look.series.length,
    shownColours,
  );
  // Values of a series keep their colours; measures have them in their order.
  const at = (line: Line) => {
    const own = line.of === undefined ? line : shape.lines[line.of];
    const slot = spec.series === undefined ? undefined : slots.get(own?.name ?? "");
    return slot ?? (line.of ?? shape.lines.indexOf(line)) % look.series.length;
  };
  return {
    legend: many ? legend(look, { data: names.data }) : { show: false },
    grid: grid(many ? names.rows : 0),
    xAxis: horizontal ? y : x,
    yAxis: horizontal ? x : y,
    tooltip: tooltip(look, {
      trigger: "axis",
      axisPointer: {
        type: isBar ? "shadow" : "line",
        lineStyle: { color: look.strong },
        shadowStyle: { opacity: 0.15 },
      },
      formatter: (items: TipItem | TipItem[]) => lineTip(Array.isArray(items) ? items : [items], shape),
    }),
    series: shape.lines.map((line) =>
      isBar ? bar(line, spec, look, at(line)) : drawn(line, shape, spec, look, at(line)),
    ),
  };
}

/** Names of measures that count something. */
const COUNTS = /(^|[^\p{L}])(counts?|rows?|number|anzahl|total)([^\p{L}]|$)/iu;
/** Below this part of the largest value, a range is shown closer than from zero. */
const NARROW_RANGE = 0.25;

function startsAtZero({ lines, y }: Extract<Shape, { kind: "lines" }>): boolean {
  if (COUNTS.test(y.name.replaceAll("_", " "))) return true;
  let [least, most] = [Infinity, -Infinity];
  for (const { points } of lines)
    for (const [, value] of points) if (value !== null) [least, most] = [Math.min(least, value), Math.max(most, value)];
  return least >= 0 && most - least > most * NARROW_RANGE;
}

const left = (look: ChartTheme) => ({ align: "left", color: look.dim, fontSize: TEXT_PX });

function lineTip(items: TipItem[], shape: Extract<Shape, { kind: "lines" }>): string {
  const [first] = items;
  if (!first) return "";
  const at = first.dataIndex ?? 0;
  const place = shape.lines[first.seriesIndex ?? 0]?.points[at]?.[0] ?? Number(first.axisValue ?? 0);
  const head = shape.x.kind === "category" ? (shape.x.labels[place] ?? "") : tooltipValue(shape.x, place);
  const rows = items.map((one) => {
    const line = shape.lines[one.seriesIndex ?? 0];
    const number = line?.points[one.dataIndex ?? 0]?.[1] ?? null;
    const text = number === null ? "no value" : numberWritten(number, line?.format);
    return `${marker(one)}${safe(short(line?.name ?? ""))}  ${safe(text)}`;
  });
  return [safe(head), ...rows].join("\n");
}

function drawn(
  line: Line,
  shape: Extract<Shape, { kind: "lines" }>,
  spec: ChartSpec,
  look: ChartTheme,
  at: number,
): object {
  const colour = look.series[at];
  const lone = line.points.some(
    ([, value], index) => value !== null && line.points[index - 1]?.[1] == null && line.points[index + 1]?.[1] == null,
  );
  return {
    type: "line",
    name: line.name,
    data: line.points,
    connectNulls: spec.connectNulls === true,
    showSymbol: lone || line.points.length <= SYMBOLS_MAX,
    symbol: "circle",
    symbolSize: 5,
    color: colour,
    lineStyle: {
      width: line.of === undefined ? 2 : 1.5,
      type: line.of === undefined ? "solid" : "dashed",
      color: colour,
      opacity: line.of === undefined ? 1 : 0.7,
    },
    itemStyle: { color: colour, opacity: line.of === undefined ? 1 : 0.7 },
    ...(spec.type === "area" ? { areaStyle: { opacity: spec.stacked ? 0.5 : 0.2 } } : {}),
    ...(spec.stacked && line.of === undefined ? { stack: "all" } : {}),
    ...(shape.thinned ? { sampling: "lttb" } : {}),
    emphasis: { focus: "none" },
    z: line.of === undefined ? 3 : 2,
  };
}

function bar(line: Line, spec: ChartSpec, look: ChartTheme, at: number): object {
  const before = line.of !== undefined;
  return {
    type: "bar",
    name: line.name,
    data: line.points.map(([place, value]) => (spec.horizontal ? [value, place] : [place, value])),
    color: look.series[at],
    barMaxWidth: 48,
    itemStyle: { color: look.series[at], opacity: before ? 0.4 : 1, borderRadius: spec.stacked ? 0 : 2 },
    ...(spec.stacked ? { stack: before ? "before" : "all" } : {}),
    emphasis: { focus: "none" },
  };
}

function partsOption(shape: Extract<Shape, { kind: "parts" }>, spec: ChartSpec, look: ChartTheme): object {
  const narrow = look.width < NARROW_PX;
  const names = shape.parts.map(({ name }) => name);
  const below = named(names, look, PIE_ROWS_MAX);
  const total = shape.parts.reduce((sum, { value }) => sum + value, 0);
  const slots = slotsOf(names, look.series.length, shownColours);
  return {
    legend: legend(
      look,
      narrow
        ? { data: below.data, top: undefined, bottom: 0 }
        : {
            data: names.slice(0, SIDE_NAMES_MAX),
            orient: "vertical",
            left: "58%",
            right: 0,
            top: "middle",
          },
    ),
    tooltip: tooltip(look, {
      trigger: "item",
      formatter: (item: TipItem) => {
        const part = shape.parts[item.dataIndex ?? 0];
        if (!part) return "";
        const line = ({ name, value }: { name: string; value: number }) =>
          `${safe(short(name))}  ${safe(numberWritten(value, shape.format))}  ${share(value / total)}`;
        const within = part.of?.slice(0, OTHERS_LISTED_MAX).map(line) ?? [];
        const more = (part.of?.length ?? 0) - within.length;
        return [marker(item) + line(part), ...within, ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
      },
    }),
    series: [
      {
        type: "pie",
        data: shape.parts.map((part) => ({ ...part, itemStyle: { color: look.series[slots.get(part.name) ?? 0] } })),
        radius: [spec.donut ? "46%" : "0%", narrow ? "92%" : "78%"],
        center: narrow ? ["50%", "50%"] : ["29%", "50%"],
        ...(narrow ? { bottom: below.rows * LEGEND_ROW_PX + 4 } : {}),
        itemStyle: { borderColor: look.surface, borderWidth: 1 },
        label: {
          position: "inside",
          color: look.surface,
          fontSize: TEXT_PX,
          fontWeight: 600,
          formatter: (item: TipItem) => ((item.percent ?? 0) >= 6 ? `${Math.round(item.percent ?? 0)}%` : ""),
        },
        labelLine: { show: false },
        emphasis: { scale: false },
      },
    ],
  };
}

function pointsOption(shape: Extract<Shape, { kind: "points" }>, look: ChartTheme): object {
  const many = shape.groups.length > 1;
  const names = named(
    shape.groups.map(({ name }) => name),
    look,
    LEGEND_ROWS_MAX,
  );
  const slots = slotsOf(
    shape.groups.map(({ name }) => name),
    look.series.length,
    shownColours,
  );
  const sizes = shape.groups.flatMap(({ points }) => points.map(({ size }) => size ?? 0));
  const most = Math.max(...sizes, 0);
  const count = sizes.length;
  const [least, widest] = POINT_PX;
  const size = (value: number[]) =>
    most > 0 ? least + (widest - least) * Math.sqrt(Math.max(0, value[2] ?? 0) / most) : 7;
  return {
    legend: many ? legend(look, { icon: "circle", data: names.data }) : { show: false },
    grid: grid(many ? names.rows : 0),
    xAxis: axisOption(shape.x, look, axisNameMiddle),
    yAxis: axisOption(shape.y, look, { ...axisNameAbove, nameTextStyle: left(look) }),
    tooltip: tooltip(look, { trigger: "item", formatter: (item: TipItem) => pointTip(item, shape, many) }),
    series: shape.groups.map(({ name, points }, at) => ({
      type: "scatter",
      name,
      data: points.map(({ place, size: own }) => [...place, own ?? 0]),
      symbolSize: shape.size ? size : 7,
      color: look.series[(many ? slots.get(name) : undefined) ?? at % look.series.length],
      itemStyle: { opacity: count > DENSE_POINTS_MIN ? 0.25 : 0.65 },
      ...(count > POINTS_MAX && !shape.size ? { large: true } : {}),
    })),
  };
}

function pointTip(item: TipItem, shape: Extract<Shape, { kind: "points" }>, many: boolean): string {
  const group = shape.groups[item.seriesIndex ?? 0];
  const point = group?.points[item.dataIndex ?? 0];
  if (!group || !point) return "";
  const head = [many ? group.name : "", point.name].filter(Boolean).map((text) => safe(short(text)));
  const rows = [
    `${safe(shape.x.name)}  ${safe(tooltipValue(shape.x, point.place[0]))}`,
    `${safe(shape.y.name)}  ${safe(tooltipValue(shape.y, point.place[1]))}`,
  ];
  if (shape.size) {
    const size = point.size === null ? "no value" : numberWritten(point.size, shape.size.format);
    rows.push(`${safe(shape.size.name)}  ${safe(size)}`);
  }
  return [...(head.length > 0 ? [head.join(" · ")] : []), ...rows].join("\n");
}

function cellsOption(shape: Extract<Shape, { kind: "cells" }>, look: ChartTheme): object {
  const numbers = shape.cells.map(([, , value]) => value);
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  const far = Math.max(-least, most);
  // Few values just below zero don't need a diverging scale.
  const both = least < 0 && most > 0 && Math.min(-least, most) > far / 10;
  const bounds = both ? { min: -far, max: far } : { min: least, max: most === least ? least + 1 : most };
  const band = { splitArea: { show: false }, splitLine: { show: false } };
  return {
    grid: { ...grid(0), right: 4, bottom: 36 },
    xAxis: axisOption(shape.x, look, { ...axisNameMiddle, ...band }),
    yAxis: axisOption(shape.y, look, {
      isVertical: true,
      inverse: true,
      ...band,
      nameLocation: "start",
      nameGap: 10,
      nameTextStyle: { color: look.dim, align: "right" },
    }),
    visualMap: {
      type: "continuous",
      ...bounds,
      calculable: false,
      orient: "horizontal",
      left: "center",
      bottom: 0,
      itemWidth: 10,
      itemHeight: 140,
      text: [numberWritten(bounds.max, shape.value.format), numberWritten(bounds.min, shape.value.format)],
      textStyle: { color: look.dim, fontSize: TEXT_PX },
      inRange: { color: both ? look.ways : look.ramp },
    },
    tooltip: tooltip(look, {
      trigger: "item",
      formatter: (item: TipItem) => {
        const cell = shape.cells[item.dataIndex ?? 0];
        if (!cell) return "";
        const place = `${shape.x.labels[cell[0]] ?? ""} · ${shape.y.labels[cell[1]] ?? ""}`;
        return `${safe(place)}\n${safe(shape.value.name)}  ${safe(numberWritten(cell[2], shape.value.format))}`;
      },
    }),
    series: [
      {
        type: "heatmap",
        data: shape.cells,
        itemStyle: { borderColor: look.surface, borderWidth: 1 },
        label: {
          show: shape.cells.length <= LABELLED_CELLS_MAX && look.width > NARROW_PX,
          fontSize: TEXT_PX,
          color: look.text,
          textBorderColor: look.surface,
          textBorderWidth: 2,
          formatter: (item: TipItem) => axisWritten(shape.cells[item.dataIndex ?? 0]?.[2] ?? 0, shape.value.format),
        },
        emphasis: { itemStyle: { borderColor: look.text } },
      },
    ],
  };
}
