import { describe, expect, it } from "vitest";
import type { StoredMapping } from "../api/config";
import type { ColumnProposal, Inferred } from "../api/types";
import { matcher } from "../uploads/globs";
import {
  allowingRejects,
  changesFor,
  leavingOut,
  ownFormats,
  tooManyRejects,
  withMapping,
  type RejectedByColumn,
} from "./changes";

const column = (name: string, type: string, more: Partial<ColumnProposal> = {}): ColumnProposal => ({
  name,
  from: name,
  type,
  nullable: true,
  evidence: {
    why: "seen",
    values: 9,
    nulls: 0,
    tokens: [],
    distinct: 3,
    distinct_exact: true,
    samples: [],
    ruled_out: [],
  },
  ...more,
});

const csv = {
  null_values: [""],
  skip_footer_rows: 0,
  footer_values: null,
  thousands: null,
  quotes: "strict",
  trim: false,
};
const inferred = (columns: ColumnProposal[], found: Record<string, unknown> = {}): Inferred =>
  ({ columns, csv_full: { ...csv, ...found }, findings: [] }) as unknown as Inferred;

const mapping: StoredMapping = {
  table: "sales",
  files: ["*.csv"],
  note: "kept",
  columns: [
    { name: "id", type: "int64", nullable: false },
    { name: "price", from: ["Price", "Preis"], type: "float64" },
    { name: "twice", expr: "price * 2", type: "float64" },
  ],
};
const none: RejectedByColumn = new Map();
const asked = (...wanted: string[]) => ({ wanted, ignored: [] });
const applied = (changes: ReturnType<typeof changesFor>) =>
  changes.filter(({ proposed }) => proposed).reduce((made, change) => change.apply(made), mapping);

describe("changes of a mapping", () => {
  it("add asked-for columns and keep everything else", () => {
    const files = inferred([
      column("id", "int64"),
      column("price", "float64", { from: "Preis" }),
      column("promo", "string"),
    ]);
    const changes = changesFor(mapping, files, none, 0, asked("promo"));
    expect(changes.map(({ label }) => label)).toEqual(["Add column promo (text)"]);
    expect(applied(changes)).toEqual({
      ...mapping,
      columns: [...(mapping.columns as unknown[]), { name: "promo", type: "string" }],
      missing_columns: "null",
    });
  });

  it("add columns that nobody left out, where none was asked for", () => {
    const files = inferred([
      column("id", "int64"),
      column("price", "float64"),
      column("promo", "string"),
      column("note", "string"),
    ]);
    const proposed = (wanted: string[], ignored: string[]) =>
      changesFor(mapping, files, none, 0, { wanted, ignored })
        .filter((change) => change.proposed)
        .map(({ id }) => id);
    expect(proposed([], [])).toEqual(["column promo", "column note"]);
    expect(proposed([], ["Note"])).toEqual(["column promo"]);
    expect(proposed(["note"], ["note"])).toEqual(["column note"]);
  });

  it("leave out exactly the named files", () => {
    const [change] = leavingOut([{ file: "in/bad [1]!.csv", why: "3 of 4 rows would be rejected" }]);
    expect(change).toMatchObject({ label: "Leave out in/bad [1]!.csv", proposed: false });
    const files = change?.apply(mapping).files as string[];
    expect(files).toEqual(["*.csv", "!in/bad [[]1[]]{!}.csv"]);
    const reads = matcher(["**/*.csv", ...files]);
    expect(["in/bad [1]!.csv", "in/bad 1.csv", "a.csv"].map(reads)).toEqual([false, true, true]);
  });

  it("give new columns free names", () => {
    const files = inferred([column("twice", "int64", { from: "Twice" })]);
    const [change] = changesFor(mapping, files, none, 0, asked("Twice"));
    const columns = change?.apply(mapping).columns as unknown[];
    expect(columns.at(-1)).toEqual({ name: "twice_2", from: "Twice", type: "int64" });
  });

  it("read a column as its files have it if its values are rejected", () => {
    const format = { decimal: ".", thousands: ",", currency: ["$"], percent: false, negative: "minus" } as const;
    const files = inferred([
      column("id", "int64"),
      column("price", "decimal(18,2)", { from: "Price", number_format: { ...format, currency: ["$"] } }),
    ]);
    expect(changesFor(mapping, files, none, 0, asked())).toEqual([]);
    const changes = changesFor(mapping, files, new Map([["price", { count: 2, nulls: false }]]), 0, asked());
    expect(changes.map(({ label }) => label)).toEqual([
      "Read price as decimal number, thousands separator comma, with $",
    ]);
    expect((applied(changes).columns as unknown[])[1]).toEqual({
      name: "price",
      from: ["Price", "Preis"],
      type: "decimal(18,2)",
      number_format: { decimal: ".", thousands: ",", currency: ["$"] },
    });
  });

  it("leave no members that text doesn't have, also where other files write the column differently", () => {
    const format = { thousands: ",", currency: ["$"] };
    const given = {
      ...mapping,
      columns: [{ name: "n", from: "N", type: "int64", number_format: format }],
      variants: [
        { files: ["a.csv"], columns: [{ name: "n", from: "N", number_format: format }] },
        { files: ["b.csv"] },
      ],
    };
    const why = "1 of 4 rows can't be read: `12 pieces` isn't a whole number";
    const found = column("n", "string", {
      evidence: { ...column("n", "string").evidence, why: "no other type matches its values" },
    });
    const [change] = changesFor(
      given,
      inferred([found]),
      new Map([["n", { count: 1, nulls: false, why }]]),
      0,
      asked(),
    );
    expect(change).toMatchObject({ label: "Read n as text", why: `${why}; the config reads whole number` });
    expect(change?.apply(given)).toMatchObject({
      columns: [{ name: "n", from: "N", type: "string" }],
      variants: [{ files: ["a.csv"], columns: [{ name: "n", from: "N" }] }, { files: ["b.csv"] }],
    });
    expect(JSON.stringify(change?.apply(given))).not.toContain("number_format");
  });

  it("don't take away what other files need, where nothing more would be read", () => {
    const rejected = new Map([["n", { count: 1, nulls: false }]]);
    const format = { decimal: null, thousands: null, currency: [], percent: false, negative: "minus" } as const;
    const of = (number_format: unknown) => ({ ...mapping, columns: [{ name: "n", type: "int64", number_format }] });
    const plain = inferred([column("n", "int64")]);
    expect(changesFor(of({ thousands: "," }), plain, rejected, 0, asked())).toEqual([]);
    const euros = inferred([column("n", "int64", { number_format: { ...format, currency: ["€"] } })]);
    const [change] = changesFor(of({ thousands: ",", currency: ["$"] }), euros, rejected, 0, asked());
    expect(change?.apply(of({ thousands: ",", currency: ["$"] })).columns).toEqual([
      { name: "n", type: "int64", number_format: { thousands: ",", currency: ["$", "€"] } },
    ]);
  });

  it("don't add up amounts in two currencies without being asked", () => {
    const rejected = new Map([["n", { count: 1, nulls: false }]]);
    const format = { decimal: null, thousands: null, currency: [], percent: false, negative: "minus" } as const;
    const table = { ...mapping, columns: [{ name: "n", type: "int64", number_format: { currency: ["$"] } }] };
    const found = inferred([column("n", "int64", { number_format: { ...format, currency: ["$", "€"] } })]);
    const [change] = changesFor(table, found, rejected, 0, asked());
    expect(change?.proposed).toBe(false);
    expect(change?.why).toContain("5 € would be added to 5 $ as 10");
    const euros = inferred([column("n", "int64", { number_format: { ...format, decimal: ",", currency: ["€"] } })]);
    const files = { ...euros, csv: { delimiter: ";" }, files_read: [{ key: "pipelines/p/t/b.csv" }] as never };
    const [own] = ownFormats(table, files, [{ file: "t/b.csv", why: "" }], "pipelines/p/");
    expect(own?.apply(table).variants).toMatchObject([
      { columns: [{ name: "n", number_format: { decimal: ",", currency: ["$"] } }] },
    ]);
  });

  it("read a column of dates as timestamps where files have times", () => {
    const rejected: RejectedByColumn = new Map([["day", { count: 9, nulls: false }]]);
    const days = (more: object): StoredMapping => ({
      ...mapping,
      columns: [{ name: "day", type: "date", ...more }],
      partition_by: ["day", { column: "id" }],
    });
    const times = inferred([column("day", "timestamp")]);
    const [change] = changesFor(days({ formats: ["%d.%m.%Y"] }), times, rejected, 0, asked());
    expect(change?.label).toBe("Read day as date and time, and ISO 8601, too");
    expect(change?.why).toContain("a date without a time of day is midnight");
    expect(change?.apply(days({ formats: ["%d.%m.%Y"] }))).toMatchObject({
      columns: [{ name: "day", type: "timestamp", formats: ["%d.%m.%Y", "iso"] }],
      partition_by: [{ column: "day", transform: "day" }, { column: "id" }],
    });
    const stamped = days({ type: "timestamp" });
    const [more] = changesFor(stamped, inferred([column("day", "date")]), rejected, 0, asked());
    expect(more?.label).toBe("Read day as YYYY-MM-DD, too");
    expect(more?.apply(stamped)).toMatchObject({
      columns: [{ name: "day", type: "timestamp", formats: ["iso", "%Y-%m-%d"] }],
      partition_by: ["day", { column: "id" }],
    });
  });

  it("allow nulls that are rejected, read tokens as null and skip marked footers", () => {
    const files = inferred([column("id", "int64"), column("price", "float64", { from: "Price" })], {
      null_values: ["", "N/A"],
      skip_footer_rows: 1,
      footer_values: ["Total"],
    });
    const changes = changesFor(mapping, files, new Map([["id", { count: 1, nulls: true }]]), 0, asked());
    const made = applied(changes);
    expect((made.columns as unknown[])[0]).toEqual({ name: "id", type: "int64" });
    expect(made.csv).toEqual({ null_values: ["", "N/A"], skip_footer_rows: 1, footer_values: ["Total"] });
  });

  it("offer nulls for columns that the files lack, without choosing that", () => {
    const changes = changesFor(mapping, inferred([column("price", "float64", { from: "Price" })]), none, 0, asked());
    expect(changes.map(({ id, proposed }) => [id, proposed])).toEqual([["missing_columns", false]]);
    expect(changes[0]?.apply(mapping)).toMatchObject({
      missing_columns: "null",
      columns: [{ name: "id", type: "int64" }, {}, {}],
    });
  });

  it("change only the table they are for", () => {
    const config = { version: 1, mappings: [{ table: "other" }, mapping] };
    const made = withMapping(config, "sales", (one) => allowingRejects({ ...one, rejects: { max_rows: 5 } }, 0.1));
    expect(made).toEqual({
      version: 1,
      mappings: [{ table: "other" }, { ...mapping, rejects: { max_rows: 5, max_ratio: 0.1 } }],
    });
  });

  it("count the rejected rows of the whole table, as a run does", () => {
    const stored = { rows: 360, rows_rejected: 1 };
    expect(tooManyRejects(stored, { read: 3, rejected: 2 }, false, { rows: 0, ratio: 0.01 })).toBeUndefined();
    expect(tooManyRejects(stored, { read: 3, rejected: 3 }, false, { rows: 0, ratio: 0.01 })).toEqual({
      read: 364,
      rejected: 4,
    });
    expect(tooManyRejects(stored, { read: 3, rejected: 0 }, true, { rows: 0, ratio: 0 })).toEqual({
      read: 361,
      rejected: 1,
    });
    expect(tooManyRejects(stored, { read: 3, rejected: 3 }, false, { rows: 4, ratio: 0.01 })).toBeUndefined();
    expect(
      tooManyRejects({ rows: 0, rows_rejected: 0 }, { read: 4, rejected: 1 }, false, { rows: 0, ratio: 1 }),
    ).toBeUndefined();
  });
});

describe("a file of another format", () => {
  const files = (csv: unknown, more: Partial<Inferred> = {}): Inferred => ({
    ...inferred([
      column("id", "int64"),
      column("day", "date", { formats: ["%d.%m.%Y"] }),
      column("price", "decimal(18,2)", { from: "Price", number_format: { currency: ["€"] } as never }),
    ]),
    csv,
    files_read: [{ key: "pipelines/p/t/b[1].csv" }, { key: "pipelines/p/t/c.csv" }] as never,
    ...more,
  });
  const table: StoredMapping = {
    table: "t",
    files: ["t/*.csv"],
    variants: [{ files: ["t/c.csv"], csv: { delimiter: ";" } }],
    columns: [
      { name: "id", type: "int64" },
      { name: "day", type: "date" },
      { name: "cost", from: ["Cost", "Price"], type: "decimal(18,2)" },
      { name: "double", type: "int64", expr: "id * 2" },
    ],
  };
  const misfits = [
    { file: "t/b[1].csv", why: "" },
    { file: "t/c.csv", why: "" },
  ];

  it("can be read in its own format", () => {
    const csv = { delimiter: ";" };
    const [change, ...others] = ownFormats(table, files(csv), misfits, "pipelines/p/");
    expect(others).toEqual([]);
    expect(change?.label).toBe(
      "Read b[1].csv in its own format: semicolon-separated, UTF-8, with header, day as DD.MM.YYYY",
    );
    expect(change?.apply(table).variants).toEqual([
      {
        files: ["t/b[[]1[]].csv"],
        csv,
        columns: [
          { name: "day", formats: ["%d.%m.%Y"] },
          { name: "cost", from: ["Cost", "Price"], number_format: { currency: ["€"] } },
        ],
      },
      { files: ["t/c.csv"], csv: { delimiter: ";" } },
    ]);
  });

  it("is read in no format of its own once it is left out", () => {
    const [change] = ownFormats(table, files({ delimiter: ";" }), misfits, "pipelines/p/");
    const out = leavingOut(misfits);
    const without = out[0]?.apply(table) ?? table;
    expect(change?.apply(without).variants).toEqual(table.variants);
    expect(change?.apply(table).variants).toHaveLength(2);
  });

  it("keeps what means null in the table", () => {
    const given = { ...table, csv: { encoding: "windows-1252", null_values: ["", "N/A"], trim: true } };
    const [change] = ownFormats(given, files({ null_values: ["", "-"] }), misfits.slice(0, 1), "pipelines/p/");
    const variants = change?.apply(given).variants as { csv: unknown }[];
    expect(variants[0]?.csv).toEqual({ null_values: ["", "N/A", "-"], trim: true });
  });

  it("is told apart from others of the same choice", () => {
    const variant = { keys: ["pipelines/p/t/c.csv"], csv: { delimiter: "|" }, columns: [{ name: "day" }] } as never;
    const [change, ...others] = ownFormats(table, files({}, { variants: [variant] }), misfits, "pipelines/p/");
    expect(others).toEqual([]);
    expect(change?.apply(table).variants).toMatchObject([
      { files: ["t/c.csv"], csv: { delimiter: "|" }, columns: [{ name: "cost" }] },
      { csv: { delimiter: ";" } },
    ]);
  });

  it("with dates in another order gets its own format, and with other dates the column reads both", () => {
    const dated = (formats: string[]): StoredMapping => ({
      ...table,
      variants: [],
      columns: [
        { name: "id", type: "int64" },
        { name: "day", type: "date", ...(formats.length > 0 ? { formats } : {}) },
      ],
    });
    const rejected: RejectedByColumn = new Map([["day", { count: 9, nulls: false }]]);
    const british = inferred([column("id", "int64"), column("day", "date", { formats: ["%d/%m/%Y"] })]);
    const found = { ...british, csv: {}, files_read: [{ key: "pipelines/p/t/b.csv" }] as never };
    const misfit = [{ file: "t/b.csv", why: "" }];
    const us = dated(["%m/%d/%Y"]);
    const [own] = ownFormats(us, found, misfit, "pipelines/p/", rejected);
    expect(own?.apply(us).variants).toEqual([
      { files: ["t/b.csv"], csv: {}, columns: [{ name: "day", formats: ["%d/%m/%Y"] }] },
    ]);
    expect(changesFor(us, found, rejected, 0, asked()).map(({ label }) => label)).toEqual([]);
    const iso = dated([]);
    expect(ownFormats(iso, found, misfit, "pipelines/p/", rejected)).toEqual([]);
    const [more] = changesFor(iso, found, rejected, 0, asked());
    expect(more?.label).toBe("Read day as DD/MM/YYYY, too");
    expect(more?.apply(iso).columns).toMatchObject([{}, { name: "day", formats: ["%Y-%m-%d", "%d/%m/%Y"] }]);
  });

  it("of the table's format is no variant", () => {
    expect(ownFormats(table, files({ null_values: ["", "-"] }), misfits.slice(0, 1), "pipelines/p/")).toEqual([]);
  });
});
