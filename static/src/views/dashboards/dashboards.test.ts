import { afterEach, describe, expect, it, vi } from "vitest";
import type { DashboardVerdict } from "../../api/types";
import { ApiFailure } from "../../api/failure";
import type { PanelRows, Row } from "../../api/types";
import { csvOf, fileNameOf, pivotCsv } from "./csv";
import { documentOf, isReadable, type PanelOf, type Param, readDocument } from "./document";
import { Draft, type Service } from "./draft";
import { kpiOf } from "./kpi";
import { literal, usedParams, withLiterals } from "./literals";
import { safeHref } from "./markdown";
import { marksOf } from "./marks";
import { pivotOf } from "../../components/pivot/layout";
import { shiftOf } from "../../boards/presets";
import { sortedRows } from "./sort";
import { fittingColumns, likelyColumn, optionsSql } from "./param-dialog";
import { chosenText, choicesOf, scalarFromText, scalarToText, searchOf } from "./values";

const param = (type: string, more: object = {}): Param => {
  const [read] = documentOf({ params: [{ name: "p", type, ...more }] }).params;
  if (!read) throw new Error(type);
  return read;
};

describe("dashboard URL", () => {
  it.each([
    ["text", {}, "a b&c", "p=a+b%26c"],
    ["text", {}, "5", "p=5"],
    ["number", {}, 2.5, "p=2.5"],
    ["select", { options: [] }, "a", "p=a"],
    ["select", { options: [] }, 5, "p=5"],
    ["select", { options: [] }, "5", "p=%225%22"],
    ["select", { options: [] }, true, "p=true"],
    ["select", { options: [] }, '"quoted"', "p=%22%5C%22quoted%5C%22%22"],
    ["select", { options: [], multiple: true }, ["a", "b"], "p=a&p=b"],
    ["date", {}, "2024-02-29", "p=2024-02-29"],
    ["date", {}, "start_of_month", "p=start_of_month"],
    ["date_range", {}, "last_7_days", "p=last_7_days"],
    ["date_range", {}, { start: "2024-01-01", end: "2024-01-31" }, "p=2024-01-01..2024-01-31"],
    ["number", {}, null, "p="],
  ])("%s %j: %j as %s, and back", (type, more, value, search) => {
    const params = [param(type, more)];
    expect(searchOf(params, { p: value })).toBe(search);
    expect(choicesOf(params, search)).toEqual({ p: value });
  });

  it("keeps other URL parameters", () =>
    expect(searchOf([param("text")], { p: "x" }, "tab=1&p=old")).toBe("tab=1&p=x"));
  it("falls back to the document's defaults for missing or invalid values", () => {
    expect(choicesOf([param("number")], "q=1&p=many")).toEqual({});
    expect(choicesOf([param("date")], "p=2024/01/01")).toEqual({});
  });
  it("round-trips any text", () => {
    for (const text of ["", "5", "1e5", "true", '"', '"a"', "null", "a", "-0", "007"])
      expect(scalarFromText(scalarToText(text))).toBe(text);
  });
});

describe("dashboard document", () => {
  it("is parsed like in the service: YAML 1.2, merge keys, extra names", async () => {
    const read = await readDocument(
      "x-k: &k { type: kpi, query: q, width: 3 }\npanels:\n  - { <<: *k, id: a, value: { field: n } }\nparams: [{ name: t, type: text, default: no }]\ntitle: no",
    );
    if (!isReadable(read)) throw new Error(read.message);
    expect(read.title).toBe("no");
    expect(read.panels[0]).toMatchObject({ type: "kpi", id: "a", width: 3, better: "higher" });
  });

  it("has the position of a syntax error", async () => {
    expect(await readDocument("a: 1\nb: [1,\nc: 2")).toMatchObject({ line: expect.any(Number) as number });
  });

  it("keeps the other panels if one is invalid", () => {
    const { panels } = documentOf({
      panels: [
        { id: "a", type: "line" },
        5,
        { id: "t", type: "markdown", text: "x", width: 99 },
        { id: "t", type: "pie" },
      ],
    });
    expect(panels.map(({ id, type }) => [id, type])).toEqual([
      ["a", "broken"],
      ["panel-2", "broken"],
      ["t", "markdown"],
    ]);
    expect(panels[2]?.width).toBe(12);
  });
});

const rows = (columns: [string, string][], cells: Row[], more: object = {}): PanelRows => ({
  columns: columns.map(([name, type]) => ({ name, type })),
  rows: cells,
  row_count: cells.length,
  truncated: false,
  limit_reason: null,
  ...more,
});

describe("KPI with a comparison", () => {
  const panel = (more: object = {}) =>
    documentOf({
      panels: [
        {
          id: "k",
          type: "kpi",
          query: "q",
          value: { field: "n", format: "integer" },
          compare: "previous_period",
          ...more,
        },
      ],
    }).panels[0] as PanelOf<"kpi">;
  const of = (now: number | null, before: number | null, more: object = {}) =>
    kpiOf(panel(more), rows([["n", "int64"]], [[now]], { previous: rows([["n", "int64"]], [[before]]) }));

  it("shows direction and size of the change, and whether it is good", () => {
    expect(of(1_100, 1_000)).toEqual({
      text: "1,100",
      change: { way: "up", tone: "ok", text: "+10% vs. 1,000 in the previous period" },
    });
    expect(of(900, 1_000, { better: "lower" }).change).toMatchObject({ way: "down", tone: "ok" });
    expect(of(900, 1_000).change).toMatchObject({ way: "down", tone: "bad" });
    expect(of(900, 1_000, { better: "neither" }).change).toMatchObject({ tone: "neutral" });
    expect(of(5, 5).change).toMatchObject({ way: "same", text: "no change vs. 5 in the previous period" });
  });
  it("shows percentage points for shares", () => {
    const value = { field: "n", format: "percent1" };
    expect(of(0.5, 0.4, { value }).change?.text).toBe("+10 points vs. 40.0% in the previous period");
  });
  it("shows no percentage relative to zero", () => {
    expect(of(5, 0).change?.text).toBe("+5 vs. 0 in the previous period");
    expect(of(5, null).change).toMatchObject({ way: "unknown" });
    expect(kpiOf(panel(), rows([["n", "int64"]], [[5]], { previous: null })).change).toMatchObject({ way: "unknown" });
    expect(of(null, 5).text).toBe("–");
  });
});

describe("pivot", () => {
  const panel = documentOf({
    panels: [
      {
        id: "p",
        type: "pivot",
        query: "q",
        rows: ["a", "b"],
        columns: ["c"],
        values: [
          { field: "n", format: "integer" },
          { field: "n", aggregate: "avg" },
        ],
      },
    ],
  }).panels[0] as PanelOf<"pivot">;
  const columns = ["a", "b", "c", "sum(n)", "avg(n)"].map((name, at) => ({
    name,
    type: at < 3 ? "string" : "float64",
  }));
  const pivot = pivotOf(panel, columns, [
    ["x", "1", "q10", 1_000, 1],
    ["x", "2", "q9", 3, 2],
    ["y", null, "q9", null, 2],
  ]);
  it("sorts its columns by value, with the measures below", () => {
    expect(pivot.head[0]).toEqual([
      { text: "q9", span: 2 },
      { text: "q10", span: 2 },
    ]);
    expect(pivot.head[1]?.map(({ text }) => text)).toEqual(["Sum of n", "Average of n", "Sum of n", "Average of n"]);
  });
  it("leaves missing cells empty, and shows nulls", () => {
    expect(pivot.rows.map(({ side, cells, same }) => [side, cells, same])).toEqual([
      [["x", "1"], ["", "", "1,000", "1"], 0],
      [["x", "2"], ["3", "2", "", ""], 1],
      [["y", "(empty)"], ["–", "2", "", ""], 0],
    ]);
  });
});

describe("totals of a pivot", () => {
  const spec = (totals: boolean, values: object[]) =>
    documentOf({ panels: [{ id: "p", type: "pivot", query: "q", rows: ["a"], columns: ["c"], values, totals }] })
      .panels[0] as PanelOf<"pivot">;
  const columns = ["a", "c", "sum(n)", "avg(n)"].map((name, at) => ({ name, type: at < 2 ? "string" : "decimal" }));
  const rows: Row[] = [
    ["x", "1", "0.10", "4"],
    ["x", "2", "9007199254740993.20", "5"],
    ["y", "1", "0.20", "6"],
    ["z", "2", null, null],
  ];
  const sum = { field: "n", format: "decimal2" };
  it("are the exact sums of rows and columns", () => {
    const pivot = pivotOf(spec(true, [sum]), columns, rows);
    expect(pivot.head.at(-1)?.map(({ text }) => text)).toEqual(["1", "2", "Total"]);
    expect(pivot.rows.map(({ cells }) => cells)).toEqual([
      ["0.10", "9,007,199,254,740,993.20", "9,007,199,254,740,993.30"],
      ["0.20", "", "0.20"],
      ["", "–", ""],
    ]);
    expect(pivot.foot).toEqual(["0.30", "9,007,199,254,740,993.20", "9,007,199,254,740,993.50"]);
  });
  it("leave out averages, distinct values and the like, which don't add up", () => {
    const pivot = pivotOf(spec(true, [sum, { field: "n", aggregate: "avg" }]), columns, rows);
    expect(pivot.head.map((level) => level.map(({ text }) => text))).toEqual([
      ["1", "2", "Total"],
      ["Sum of n", "Average of n", "Sum of n", "Average of n", "Sum of n"],
    ]);
    expect(pivot.rows[0]?.cells.at(-1)).toBe("9,007,199,254,740,993.30");
    expect(pivot.foot).toEqual(["0.30", "", "9,007,199,254,740,993.20", "", "9,007,199,254,740,993.50"]);
    for (const aggregate of ["avg", "min", "max", "median", "count_distinct", "first", "last"]) {
      const none = pivotOf(spec(true, [{ field: "n", aggregate }]), columns, rows);
      expect([none.totals, none.foot]).toEqual([0, undefined]);
    }
  });
  it("aren't there unless they are asked for, nor of a part of the result", () => {
    for (const pivot of [pivotOf(spec(false, [sum]), columns, rows), pivotOf(spec(true, [sum]), columns, rows, true)])
      expect([pivot.totals, pivot.foot]).toEqual([0, undefined]);
  });
});

it("a pivot shows times that are all midnights as days", () => {
  const spec = { rows: [{ field: "a" }], columns: [], values: [{ field: "n", aggregate: "sum" }] };
  const columns = [
    { name: "a", type: "timestamp" },
    { name: "n", type: "int64" },
  ];
  expect(pivotOf(spec, columns, [["2025-02-01T00:00:00", 1]]).rows[0]?.side).toEqual(["Feb 1, 2025"]);
});

it("a CSV has days where no time of day is recorded, and whole times elsewhere", () => {
  const columns = ["month", "sold_at", "note"].map((name, at) => ({ name, type: at < 2 ? "timestamp" : "string" }));
  const rows: Row[] = [
    ["2025-02-01T00:00:00", "2025-02-01T00:00:00", "2025-02-01T00:00:00"],
    ["2025-03-01T00:00:00.000", "2025-02-01T08:15:00", null],
    [null, null, null],
  ];
  expect(csvOf(columns, rows)).toBe(
    "month,sold_at,note\r\n2025-02-01,2025-02-01T00:00:00,2025-02-01T00:00:00\r\n2025-03-01,2025-02-01T08:15:00,\r\n,,\r\n",
  );
});

describe("the column that is suggested for a filter", () => {
  const columns = [
    ["order_id", "int64"],
    ["customerId", "string"],
    ["amount", "decimal(10,2)"],
    ["region", "string"],
    ["sold_at", "timestamp"],
  ].map(([name = "", type = ""]) => ({ name, type }));
  it.each([
    [[], "sold_at"],
    [["sold_at"], "region"],
    [["sold_at", "region"], "amount"],
    [["sold_at", "region", "amount"], "order_id"],
  ])("beside filters of %j is %s", (used, name) => expect(likelyColumn(columns, used)?.name).toBe(name));
});

describe("one filter of several tables", () => {
  const tables = Object.entries({
    sales_us: { region: "string", order_date: "date", amount: "decimal(10,2)" },
    "sales-eu": { Region: "string", order_date: "timestamp", amount: "int64" },
    costs: { region: "int32", place: "string", paid_on: "date", amount: "string" },
  }).map(([name, columns]) => ({ name, schema: Object.entries(columns).map(([name, type]) => ({ name, type })) }));
  it.each([
    ["region", "string", { sales_us: "region", "sales-eu": "Region" }],
    ["region", "boolean", { sales_us: "region", "sales-eu": "Region" }],
    ["region", "float64", { costs: "region" }],
    ["order_date", "timestamptz", { sales_us: "order_date", "sales-eu": "order_date" }],
    ["amount", "float64", { sales_us: "amount", "sales-eu": "amount" }],
    ["city", "string", {}],
  ])("%s of the type %s fits columns of the same name and kind", (name, type, expected) =>
    expect(Object.fromEntries(fittingColumns(tables, { name, type }))).toEqual(expected),
  );

  it("offers the values of all of them", () => {
    const columns = fittingColumns(tables, { name: "region", type: "string" });
    expect(optionsSql(columns)).toBe(
      "SELECT DISTINCT coalesce(CAST(region AS VARCHAR), '(empty)') AS value FROM sales_us\n" +
        `UNION SELECT coalesce(CAST(Region AS VARCHAR), '(empty)') AS value FROM "sales-eu" ORDER BY 1 LIMIT 1000`,
    );
  });
});

describe("the text of a chosen value", () => {
  it.each([
    ["date_range", { start: "2025-01-01", end: "2025-02-28" }, "Jan 1, 2025 to Feb 28, 2025"],
    [
      "date_range",
      { start: "2025-01-01", end: "2025-01-31", preset: "last_month" },
      "Last month (Jan 1, 2025 to Jan 31, 2025)",
    ],
    ["date_range", { start: "2000-01-01", end: "2030-01-31", preset: "all" }, "All time"],
    ["date", "2025-01-01", "Jan 1, 2025"],
    ["date", "start_of_month", "Start of the month"],
    ["select", ["JFK", "LGA"], "Kennedy or LGA"],
    ["number", 0, "0"],
    ["text", null, "any"],
  ])("of a %s: %j is %s", (type, value, text) => {
    const one = param(type, { options: [{ value: "JFK", label: "Kennedy" }] });
    expect(chosenText(value, one)).toBe(text);
  });
});

describe("query with parameters", () => {
  it("has values inserted, but not within strings, identifiers and comments", () => {
    const sql = `SELECT '$p', "$p", $p_start, $q /* $q */ FROM t -- $q\nWHERE a$q = $q AND $$ $q $$ = $other`;
    const params = [
      { name: "p", type: "date_range" },
      { name: "q", type: "text" },
    ];
    expect(withLiterals(sql, params, { p: { start: "2024-01-01", end: "2024-01-31" }, q: "it's" })).toBe(
      `SELECT '$p', "$p", DATE '2024-01-01', 'it''s' /* $q */ FROM t -- $q\nWHERE a$q = 'it''s' AND $$ $q $$ = $other`,
    );
  });
  it("finds the parameters that a statement uses, outside texts and names", () => {
    const params = [
      { name: "period", type: "date_range" },
      { name: "shop", type: "select" },
      { name: "shops", type: "select" },
    ];
    const used = (sql: string) => usedParams(sql, params).map(({ name }) => name);
    expect(used("SELECT 1 WHERE day >= $period_start AND shop = $shops")).toEqual(["period", "shops"]);
    expect(used("SELECT '$shop', \"$shop\" -- $shop")).toEqual([]);
  });
  it("writes literals of each type", () => {
    expect([null, 5, true, ["a", 1], "x"].map((value) => literal(value))).toEqual([
      "NULL",
      "5",
      "TRUE",
      "['a', 1]",
      "'x'",
    ]);
  });
});

it("links may be web, mail or relative addresses only", () => {
  for (const href of ["https://a.b/c", "mailto:a@b.c", "/p/x", "data/sales", "#here"])
    expect(safeHref(href)).toBe(href);
  for (const href of [
    "javascript:x",
    "JaVaScRiPt:x",
    "java\tscript:x",
    " javascript:x",
    "\u0001javascript:x",
    "data:text/html,x",
    "vbscript:x",
    "//evil.example",
    "\\\\evil",
    "",
  ])
    expect(safeHref(href)).toBeUndefined();
});

it("problems are marked at the right character, also after surrogate pairs", () => {
  const text = "a: 😀 b\nfield: x";
  const error = (line: number, column: number) => ({ kind: "syntax" as const, message: "m", path: "", line, column });
  const marks = marksOf(text, { ok: false, errors: [error(1, 6), error(2, 1), error(9, 1)], warnings: [] });
  expect(marks.map(({ from, to }) => text.slice(from, to))).toEqual(["b", "field", ""]);
});

it("days between compared ranges", () => {
  expect(shiftOf({ start: "2024-03-01", end: "2024-03-31" }, "previous_period")).toBe(31);
  expect(shiftOf({ start: "2024-03-01", end: "2024-03-31" }, "previous_year")).toBe(366);
  expect(shiftOf({ start: "2024-02-29", end: "2024-02-29" }, "previous_year")).toBe(366);
});

it("tables sort numbers by value and keep nulls last", () => {
  const columns = [{ name: "n", type: "decimal(5,2)" }];
  const cells: Row[] = [["9.50"], [null], ["10.00"]];
  expect(sortedRows(cells, columns, [{ column: "n", descending: false }])).toEqual([["9.50"], ["10.00"], [null]]);
  expect(sortedRows(cells, columns, [{ column: "n", descending: true }])).toEqual([["10.00"], ["9.50"], [null]]);
});

it("a pivot is downloaded as it is shown, with numbers and totals", () => {
  const spec = {
    rows: [{ field: "shop", title: "Shop" }],
    columns: [{ field: "month", format: "month" }],
    values: [
      { field: "sum(price)", title: "Revenue", format: "usd", aggregate: "sum" },
      { field: "avg(price)", aggregate: "avg" },
    ],
    totals: true,
  };
  const columns = [
    { name: "shop", type: "string" },
    { name: "month", type: "date" },
    { name: "sum(price)", type: "decimal(38,2)" },
    { name: "avg(price)", type: "double" },
  ];
  const rows: Row[] = [
    ["Ulm", "2025-01-01", "1234.50", 2.5],
    ["Ulm", "2025-02-01", "1.00", null],
    ["Bonn, old", "2025-02-01", "2.25", 0.5],
  ];
  expect(pivotCsv(spec, columns, rows, false).split("\r\n")).toEqual([
    "Shop,Jan 2025 / Revenue,Jan 2025 / Average of avg(price),Feb 2025 / Revenue,Feb 2025 / Average of avg(price),Total / Revenue",
    "Ulm,1234.50,2.5,1.00,,1235.50",
    '"Bonn, old",,,2.25,0.5,2.25',
    "Total,1234.50,,3.25,,1237.75",
    "",
  ]);
});

it("downloads have the panel's titles, and a name of its title and the day", () => {
  const panel = { id: "chart", x: { field: "day" }, y: [{ field: "sum(price)", title: "Revenue" }] };
  const columns = ["day", "sum(price)"].map((name) => ({ name, type: "string" }));
  expect(csvOf(columns, [], panel)).toBe("day,Revenue\r\n");
  expect(fileNameOf("Revenue: €/month", "csv")).toMatch(/^Revenue €\u0020month \d{4}-\d\d-\d\d\.csv$/);
});

it("downloads are CSV", () => {
  expect(csvOf([{ name: "a,b", type: "string" }], [['say "x"'], [null], [5]])).toBe(
    '"a,b"\r\n"say ""x"""\r\n\r\n5\r\n',
  );
});

describe("draft", () => {
  const good = { ok: true, errors: [], warnings: [] };
  const missing = new ApiFailure(404, "dashboard_not_found", "none");
  const service = (more: Partial<Service> = {}): Service => ({
    statesOf: () => Promise.resolve({ published: true, draft: more.textOf !== undefined }),
    textOf: (_slug, _name, draft) => (draft ? Promise.reject(missing) : Promise.resolve({ text: "one", etag: '"p"' })),
    saveDraft: vi.fn(() => Promise.resolve({ verdict: good, etag: '"2"' })),
    validate: () => Promise.resolve(good),
    publish: () => Promise.resolve(),
    ...more,
  });
  afterEach(() => localStorage.clear());

  it("is saved only over the version that it is based on", async () => {
    const own = service();
    const draft = new Draft("s", "a", own);
    await draft.load();
    draft.type("two");
    expect(draft.dirty.value).toBe(true);
    expect(await draft.save()).toBe(true);
    expect(own.saveDraft).toHaveBeenCalledWith("s", "a", "two", null);
    draft.type("three");
    await draft.save();
    expect(own.saveDraft).toHaveBeenLastCalledWith("s", "a", "three", '"2"');
    expect(draft.dirty.value).toBe(false);
    expect(localStorage.length).toBe(0);
  });

  it("is removed once all its changes are undone", async () => {
    const own = service({ publish: vi.fn(() => Promise.resolve()) });
    const draft = new Draft("s", "f", own);
    await draft.load();
    draft.edit("two");
    await draft.save();
    expect(draft.isChanged.value).toBe(true);
    draft.undo();
    await draft.save();
    expect(own.publish).toHaveBeenCalledWith("s", "f", '"2"');
    expect(draft.isChanged.value).toBe(false);
    await draft.publish();
    expect(draft.published.value?.text).toBe("one");
    draft.redo();
    await draft.save();
    expect(own.saveDraft).toHaveBeenLastCalledWith("s", "f", "two", null);
    expect(draft.isChanged.value).toBe(true);
  });

  it("stays in the browser if saving fails, and is restored on reload", async () => {
    const down = service({ saveDraft: () => Promise.reject(new ApiFailure(401, "unauthenticated", "no session")) });
    const draft = new Draft("s", "b", down);
    await draft.load();
    draft.type("typed");
    expect(await draft.save()).toBe(false);
    const again = new Draft("s", "b", service());
    await again.load();
    expect(again.text.value).toBe("typed");
    expect(again.dirty.value).toBe(true);
    await again.save();
  });

  it("counts as saved if only validation fails", async () => {
    const slow = new ApiFailure(503, "unavailable", "no store");
    const draft = new Draft("s", "d", service({ validate: () => Promise.reject(slow) }));
    await draft.load();
    draft.type("two");
    expect(await draft.save()).toBe(true);
    await draft.validate();
    expect(draft.unsaved.value).toBeUndefined();
    expect(draft.validationFailure.value).toBe(slow);
  });

  it("gets the proposed repairs in one step, until no problem has one", async () => {
    const broken = "SELECT sum(amount) AS a FROM sales WHERE amount > 1";
    const first = (text: string): DashboardVerdict => {
      const at = text.search(/\bamount\b/);
      const message = 'referenced column "amount" not found in FROM clause!; Candidate bindings: "amount_eur"';
      const errors = at < 0 ? [] : [{ kind: "invalid_sql" as const, message, path: "", line: 1, column: at + 1 }];
      return { ok: errors.length === 0, errors, warnings: [] };
    };
    const own = service({
      textOf: () => Promise.resolve({ text: broken, etag: '"1"' }),
      validate: (_slug, _name, text) => Promise.resolve(first(text)),
    });
    const draft = new Draft("s", "e", own);
    await draft.load();
    expect(await draft.repair([])).toBe(2);
    expect(draft.text.value).toBe("SELECT sum(amount_eur) AS a FROM sales WHERE amount_eur > 1");
    await draft.save();
    expect(own.saveDraft).toHaveBeenCalledTimes(1);
    expect(await draft.repair([])).toBe(0);
    draft.undo();
    expect(draft.text.value).toBe(broken);
    await draft.save();
  });

  it("keeps both versions if another user changed it", async () => {
    let theirs = "one";
    const own = service({
      textOf: () => Promise.resolve({ text: theirs, etag: '"9"' }),
      saveDraft: vi.fn((_s: string, _n: string, text: string, etag: string | null) =>
        etag === '"9"' && text === "mine" && theirs === "theirs"
          ? Promise.resolve({ verdict: good, etag: '"10"' })
          : Promise.reject(new ApiFailure(412, "precondition_failed", "changed")),
      ),
    });
    const draft = new Draft("s", "c", own);
    await draft.load();
    draft.type("mine");
    theirs = "theirs";
    const first = vi.mocked(own.saveDraft);
    first.mockRejectedValueOnce(new ApiFailure(412, "precondition_failed", "changed"));
    expect(await draft.save()).toBe(false);
    expect(draft.conflict.value?.text).toBe("theirs");
    expect(await draft.keepMine()).toBe(true);
    expect(draft.conflict.value).toBeUndefined();
  });
});
