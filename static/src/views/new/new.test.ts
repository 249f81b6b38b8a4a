import { describe, expect, it } from "vitest";
import type { Inferred, Previewed } from "../../api/types";
import { filesOf, globsOf } from "./create";
import {
  columnProblems,
  concernsOf,
  configOf,
  draftOf,
  mappingOf,
  partitionings,
  slugOf,
  slugProblem,
  withNulls,
  type Draft,
  type DraftColumn,
} from "./draft";
import { merged } from "./preview";
import { withNames } from "./proposal";
import { guess, changedByUser, snake, union } from "./recut";
import { cut, sampleOfStream } from "../../uploads/sample";
import { changed } from "../../tables/dialect";
import { stemOf } from "../../uploads/source-names";

const column = (name: string, from: string, type: string, distinct = 3) => ({
  name,
  from,
  type,
  nullable: true,
  evidence: { why: "", values: 10, nulls: 0, tokens: [], distinct, distinct_exact: true, samples: [], ruled_out: [] },
});
const inferred = (more: Partial<Inferred> = {}): Inferred => ({
  mapping: {},
  key: "",
  table: "sales",
  files: [],
  csv: { delimiter: ";" },
  csv_full: {} as Inferred["csv_full"],
  findings: [],
  columns: [column("day", "Day", "date", 12), column("total", "total", "int64")],
  partial: false,
  suggestions: [
    {
      kind: "partition_by",
      value: { column: "day", transform: "month" },
      why: "`day` has 90 different days in 5000 rows",
    },
    { kind: "sort_by", value: "day", why: "" },
  ],
  sample: {
    bytes_read: 1,
    bytes_total: 1,
    rows_read: 100,
    rows_refused: 0,
    rows_misfit: 0,
    whole: true,
    rows_confirmed: 100,
  },
  warnings: [],
  files_read: [],
  files_failed: [],
  ...more,
});

describe("draft", () => {
  it("produces the proposed config", () => {
    const config = configOf("shop", [mappingOf(draftOf(inferred()), inferred(), ["sales/*.csv"])]);
    expect(config).toEqual({
      version: 1,
      title: "shop",
      mappings: [
        {
          table: "sales",
          files: ["sales/*.csv"],
          csv: { delimiter: ";" },
          columns: [
            { name: "day", type: "date" },
            { name: "total", type: "int64" },
          ],
          partition_by: [{ column: "day", transform: "month" }],
        },
      ],
    });
  });

  it("names the columns whose proposal lost something, until their type is chosen", () => {
    const given = inferred();
    const price = column("price", "Price", "string");
    const warnings = ["amounts in several currencies, which a number would lose: `$` (2); the column stays text"];
    const proposal = { ...given, columns: [...given.columns, { ...price, evidence: { ...price.evidence, warnings } }] };
    const { columns } = draftOf(proposal);
    expect(concernsOf(columns, proposal)).toEqual([
      { id: 2, name: "price", text: "is text: amounts in several currencies, which a number would lose: `$` (2)" },
    ]);
    const last = (change: Partial<DraftColumn>) => columns.map((one) => (one.id === 2 ? { ...one, ...change } : one));
    expect(concernsOf(last({ type: "float64" }), proposal)).toEqual([]);
    expect(concernsOf(last({ included: false }), proposal)).toEqual([]);
  });

  it("keeps a column's number format while it is a number", () => {
    const given = inferred();
    const [day, total] = given.columns;
    if (!day || !total) throw new Error("two columns");
    const format = { currency: true } as never;
    const draft = draftOf({ ...given, columns: [day, { ...total, number_format: format }] });
    const columnsOf = (types: string[]) =>
      mappingOf({ ...draft, columns: draft.columns.map((one, at) => ({ ...one, type: types[at] ?? "" })) }, given, [])
        .columns;
    expect(columnsOf(["date", "decimal(18,2)"])).toMatchObject([{}, { number_format: format }]);
    expect(columnsOf(["date", "string"])).not.toMatchObject([{}, { number_format: format }]);
  });

  it("renames the partition of a renamed column, and drops that of an excluded one", () => {
    const draft = draftOf(inferred());
    const [day, total] = draft.columns;
    if (!day || !total) throw new Error("two columns");
    const mapping = (columns: typeof draft.columns) => mappingOf({ ...draft, columns, sorted: true }, inferred(), []);
    expect(mapping([{ ...day, name: "sold" }, total])).toMatchObject({
      partition_by: [{ column: "sold" }],
      sort_by: ["sold"],
    });
    const without = mapping([{ ...day, included: false }, total]);
    expect(without).not.toHaveProperty("partition_by");
    expect(without).not.toHaveProperty("sort_by");
  });

  it("accepts rejected rows if the sample has any", () => {
    const sample = { ...inferred().sample, rows_refused: 3 };
    expect(draftOf(inferred({ sample })).rejectsMax).toBe(0.1);
    const misfits = { ...inferred().sample, rows_misfit: 3 };
    expect(draftOf(inferred({ sample: misfits })).rejectsMax).toBe(0.1);
    expect(draftOf(inferred()).rejectsMax).toBe(0);
  });

  it("makes columns nullable if null values are selected for them", () => {
    const given = inferred();
    const [day, total] = given.columns;
    if (!day || !total) throw new Error("two columns");
    const columns = [
      { ...day, nullable: false },
      { ...total, nullable: false, evidence: { ...total.evidence, tokens: [{ token: "N/A", count: 4, null: false }] } },
    ];
    const draft = draftOf({ ...given, columns });
    expect(draft.columns.map(({ nullable }) => nullable)).toEqual([false, false]);
    const ticked = changed(draft.dialect, "null_values", ["", "N/A"]);
    expect(withNulls(draft.columns, ticked).map(({ nullable }) => nullable)).toEqual([false, true]);
    // Also null values that the proposal selects.
    const proposed = draftOf({ ...given, columns, csv: { null_values: ["", "N/A"] } });
    expect(proposed.columns.map(({ nullable }) => nullable)).toEqual([false, true]);
  });

  it("writes only dialect settings that differ from the default", () => {
    expect(changed({ delimiter: ";" }, "delimiter", ",")).toEqual({});
    expect(changed({}, "decimal", ",")).toEqual({ decimal: "," });
    expect(changed({ null_values: ["NA"] }, "null_values", [""])).toEqual({});
  });

  it("counts the files that a partitioning would produce", () => {
    expect(partitionings(inferred())[0]?.files).toBe(3);
    const byKind = [{ kind: "partition_by" as const, value: "total", why: "" }];
    expect(partitionings(inferred({ suggestions: byKind }))[0]?.files).toBe(3);
  });

  it("reports missing, duplicate and taken names", () => {
    const columns = draftOf(inferred()).columns.map((one) => ({ ...one, name: "Same" }));
    expect([...columnProblems(columns).keys()]).toEqual([1]);
    expect(columnProblems(columns.map((one) => ({ ...one, included: one.id === 0 }))).size).toBe(0);
    expect(slugOf("Umsätze 2024", new Set(["umsatze-2024"]))).toBe("umsatze-2024-2");
    expect(slugOf("???", new Set())).toBe("data");
    expect(slugProblem("shop", new Set(["shop"]))).toContain("already");
    expect(slugProblem("Shop", new Set())).toBeDefined();
  });
});

describe("files of a new pipeline", () => {
  it("are matched by globs with their extensions", () => {
    expect(globsOf("t", ["a.csv", "b.2024.csv", "c.csv.gz"])).toEqual(["t/*.csv", "t/*.csv.gz", "t/*.csv.zst"]);
    expect(globsOf("t", ["d.TXT"])).toEqual(["t/*.TXT", "t/*.TXT.gz", "t/*.TXT.zst"]);
    expect(globsOf("t", ["none"])).toEqual(["t/*"]);
    expect(filesOf({ kind: "lake", key: "up/[x].csv" }, "shop", "t")).toEqual(["[[]x[]].csv"]);
    expect(filesOf({ kind: "lake", key: "pipelines/shop/in/x.csv" }, "shop", "t")).toEqual(["in/x.csv"]);
    expect([stemOf("a.csv.gz"), stemOf("a.b.tsv"), stemOf(".csv")]).toEqual(["a", "a.b", "data"]);
  });
});

describe("sample", () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  it("ends at the end of a record", () => {
    expect(cut(bytes("a,b\n1,2\n3,"))).toBe(8);
    expect(cut(bytes('a,b\n1,"x\ny'))).toBe(4);
    expect(cut(bytes("no line end"))).toBe(11);
    expect(cut(new Uint8Array([0xff, 0xfe, 0x61, 0, 0x0a, 0, 0x62, 0]))).toBe(6);
  });

  it("of a gzip file is its decompressed start", async () => {
    const packed = new Blob(["a,b\n1,2\n"]).stream().pipeThrough(new CompressionStream("gzip"));
    const sample = await sampleOfStream(packed, "x.csv.gz");
    expect([await sample.body.text(), sample.whole, sample.ending]).toEqual(["a,b\n1,2\n", true, ".txt"]);
  });
});

describe("changed dialect", () => {
  it("names and types the columns by the first cells", () => {
    expect([snake("Order Total"), snake("orderTotal"), snake("2024"), snake("%%")]).toEqual([
      "order_total",
      "order_total",
      "c2024",
      "",
    ]);
    expect(guess(["1", "-2", null], ".")).toBe("int64");
    expect(guess(["007"], ".")).not.toBe("int64");
    expect(guess(["1,5"], ",")).toBe("float64");
    expect(guess(["2024-01-31"], ".")).toBe("date");
    expect(guess(["a", "1"], ".")).toBe("string");
    expect(guess([null], ".")).toBe("string");
  });
});

describe("preview", () => {
  it("shows rejected rows at their position in the file", () => {
    const reject = {
      line: 3,
      byte_offset: 9,
      column: "total",
      value: "x",
      reason: "wrong_type",
      message: "no",
      raw: "b;x",
    };
    const previewed = {
      rows: [
        ["a", 1],
        ["c", 3],
      ],
      rejects: [reject],
      header: ["Day", "total"],
      whole: true,
    } as unknown as Previewed;
    const { columns } = draftOf(inferred());
    const { rows, refused } = merged(previewed, { delimiter: ";" }, columns);
    expect(rows).toEqual([
      ["a", 1],
      ["b", "x"],
      ["c", 3],
    ]);
    expect([...refused.keys()]).toEqual([1]);
  });
  it("shows percentages as the file has them", () => {
    const previewed = { rows: [[0.125, null]], rejects: [], header: null, whole: true } as unknown as Previewed;
    const columns = draftOf(inferred())
      .columns.slice(0, 2)
      .map((one) => ({
        ...one,
        type: "decimal(9,4)",
        numberFormat: { percent: true } as NonNullable<typeof one.numberFormat>,
      }));
    expect(merged(previewed, {}, columns).rows).toEqual([["12.5%", null]]);
  });
});

describe("edited columns after a dialect change", () => {
  const { columns } = draftOf(inferred());
  const changedFirst = columns.map((one, at) => (at === 0 ? { ...one, name: "when" } : one));

  it("keep only the user's edits", () => {
    expect(changedByUser(columns, columns, [])).toEqual([]);
    expect(changedByUser(changedFirst, columns, []).map(({ name }) => name)).toEqual(["when"]);
  });

  it("are restored when the dialect is changed back, unless edited since", () => {
    const own = changedByUser(changedFirst, columns, []);
    expect(changedByUser(columns, columns, own)).toEqual(own);
    const back = changedByUser(columns, changedFirst, own);
    expect(back.map(({ name }) => name)).toEqual(["day"]);
  });
});

describe("variants", () => {
  const variant = {
    keys: ["pipelines/d/.b.txt"],
    files: ["b.csv"],
    csv: { delimiter: ";" },
    csv_full: {} as never,
    findings: [],
    columns: [{ name: "day", from: "Tag", formats: ["%d.%m.%Y"] }],
  };
  const of = (change: (draft: Draft) => Draft) => {
    const proposed = inferred({ variants: [variant] });
    const draft = change(draftOf(proposed));
    return mappingOf(draft, proposed, ["t/*.csv"], ({ keys }) => keys.map(() => "t/b.csv")).variants;
  };
  const change = (to: Partial<DraftColumn>) => (draft: Draft) => ({
    ...draft,
    columns: draft.columns.map((column) => (column.name === "day" ? { ...column, ...to } : column)),
  });
  const changed = { files: ["t/b.csv"], csv: { delimiter: ";" } };
  it("read their files as proposed", () => {
    expect(of((draft) => draft)).toEqual([{ ...changed, columns: variant.columns }]);
  });
  it("follow the columns of the table", () => {
    expect(of(change({ name: "tag" }))).toEqual([{ ...changed, columns: [{ name: "tag", formats: ["%d.%m.%Y"] }] }]);
    expect(of(change({ type: "string" }))).toEqual([{ ...changed, columns: [{ name: "day", from: "Tag" }] }]);
    expect(of(change({ included: false }))).toEqual([changed]);
  });
  it("without files are left out", () => {
    const proposed = inferred({ variants: [variant] });
    expect(mappingOf(draftOf(proposed), proposed, ["t/*.csv"])).not.toHaveProperty("variants");
  });
});

it("texts of a proposal name the files, not their samples", () => {
  const text = "`.shop.1.txt`: 1 record is rejected";
  const [day, total] = inferred().columns;
  const why = { ...(day as NonNullable<typeof day>).evidence, why: text, warnings: [text] };
  const proposed = inferred({ warnings: [text], columns: [{ ...day, evidence: why } as never, total as never] });
  const named = withNames(proposed, [{ key: "pipelines/d/.shop.1.txt", name: "shop 2024.csv" }]);
  const expected = "`shop 2024.csv`: 1 record is rejected";
  expect(named.warnings).toEqual([expected]);
  expect(named.columns[0]?.evidence).toMatchObject({ why: expected, warnings: [expected] });
});

it("columns that only some files have stay after another split", () => {
  expect(union([["id", "a"], ["ID", "b"], ["a"]], true)).toEqual(["id", "a", "b"]);
  expect(
    union(
      [
        ["1", "2"],
        ["1", "2", "3"],
      ],
      false,
    ),
  ).toEqual(["1", "2", "3"]);
});
