import { describe, expect, it } from "vitest";
import type { StoredConfig } from "../api/config";
import { editedText, exampleMapping, NO_EDIT, placeOf, RAW, type ColumnEdit } from "./column";
import { pairsOf } from "./column-reading";

const TEXT = `{
  "version": 1, "title": "n: 1.10",
  "mappings": [
    { "table": "other", "files": ["o/*.csv"], "columns": [{ "name": "day", "type": "string" }] },
    {
      "table": "sales",
      "files": ["sales/*.csv"],
      "columns": [
        { "name": "id",   "type": "int64" },
        {
          "name": "day",
          "type": "string"
        },
        { "name": "price", "type": "decimal(10,2)", "nullable": true, "number_format": {"currency":["$"]} }
      ],
      "variants": [
        { "files": ["sales/b-*.csv"], "csv": {"delimiter":";"}, "columns": [{ "name": "day", "from": "Datum" }] },
        { "files": ["sales/c-*.csv"] }
      ],
      "rejects": { "max_ratio": 0.10 },
      "partition_by": ["day", { "column": "day", "transform": "month" }],
      "sort_by": ["id", "day"]
    }
  ]
}
`;

function edited(column: string, edit: Partial<ColumnEdit>, text = TEXT): string {
  const place = placeOf(JSON.parse(text) as StoredConfig, "sales", column);
  if (!place) throw new Error(`no column ${column}`);
  return editedText(text, place, { ...NO_EDIT, ...edit });
}

describe("the text of a config with an edited column", () => {
  it("has only the type changed", () => {
    expect(edited("id", { members: { type: "int32" } })).toBe(TEXT.replace('"int64"', '"int32"'));
  });
  it("has new members on lines of their own where the others are", () => {
    expect(edited("day", { members: { type: "date", formats: ["%d.%m.%Y"], nullable: false } })).toBe(
      TEXT.replace(
        '"name": "day",\n          "type": "string"',
        '"name": "day",\n          "type": "date",\n          "formats": ["%d.%m.%Y"],\n          "nullable": false',
      ),
    );
    expect(edited("id", { members: { on_error: "null" } })).toBe(
      TEXT.replace('"type": "int64" }', '"type": "int64", "on_error": "null" }'),
    );
  });
  it("drops what the new type doesn't have, and keeps defaults that are written", () => {
    expect(edited("price", { members: { type: "string", on_error: "reject", nullable: true } })).toBe(
      TEXT.replace(
        '"decimal(10,2)", "nullable": true, "number_format": {"currency":["$"]} }',
        '"string", "nullable": true }',
      ),
    );
  });
  it("stays as it is without changes", () => {
    expect(edited("price", {})).toBe(TEXT);
    expect(edited("id", { members: { formats: [], number_format: {}, on_error: "reject" } })).toBe(TEXT);
  });
  it("has the formats of variants changed, or added with the table's header", () => {
    const type = { members: { type: "date" } };
    expect(edited("day", { ...type, variants: { 0: { formats: ["%d.%m.%Y"] } } })).toContain(
      '"columns": [{ "name": "day", "from": "Datum", "formats": ["%d.%m.%Y"] }] }',
    );
    expect(edited("day", { ...type, variants: { 1: { formats: ["%m/%d/%Y"] } } })).toContain(
      '{ "files": ["sales/c-*.csv"], "columns": [',
    );
    expect(edited("day", { ...type, variants: { 1: { formats: ["%m/%d/%Y"] } } })).toContain('"Datum"');
  });
  it("keeps the header of a renamed column, in variants, partitions and the sort order, too", () => {
    const text = edited("day", { members: { name: "sold_on" } });
    const { mappings } = JSON.parse(text) as { mappings: Record<string, unknown>[] };
    expect(mappings[0]).toEqual((JSON.parse(TEXT) as { mappings: unknown[] }).mappings[0]);
    expect(mappings[1]).toMatchObject({
      columns: [{ name: "id" }, { name: "sold_on", from: "day", type: "string" }, { name: "price" }],
      variants: [{ columns: [{ name: "sold_on", from: "Datum" }] }, { files: ["sales/c-*.csv"] }],
      partition_by: ["sold_on", { column: "sold_on", transform: "month" }],
      sort_by: ["id", "sold_on"],
    });
    expect(text).toContain('"max_ratio": 0.10');
    expect(edited("id", { members: { name: "ID" } })).toBe(TEXT.replaceAll('"id"', '"ID"'));
  });
  it("has another ratio of allowed rejects", () => {
    expect(edited("id", { ratio: 1 })).toBe(TEXT.replace("0.10", "1"));
    const without = TEXT.replace('      "rejects": { "max_ratio": 0.10 },\n', "");
    expect(edited("id", { ratio: 1 }, without)).toContain(
      '"sort_by": ["id", "day"],\n      "rejects": { "max_ratio": 1 }',
    );
  });
});

it("examples read the text of the cells beside the values, and reject no row", () => {
  const { mappings = [] } = JSON.parse(TEXT) as StoredConfig;
  const sales = { ...mappings[1], where: "price > 0" };
  const made = exampleMapping(sales, { name: "day", type: "date" });
  expect(made).not.toHaveProperty("where");
  expect(made).not.toHaveProperty("partition_by");
  expect(made.columns).toContainEqual({ name: RAW, from: "day", type: "string", nullable: true, on_error: "null" });
  expect(made.columns).toContainEqual({ name: "id", type: "int64", nullable: true, on_error: "null" });
  expect(made.variants).toMatchObject([{ columns: [{ name: "day" }, { name: RAW, from: "Datum" }] }, {}]);
  const headless = exampleMapping({ ...sales, csv: { header: false } }, { name: "day", type: "date" });
  expect(headless.columns).toContainEqual(expect.objectContaining({ name: RAW, from: 1 }));
});

it("examples that can't be read come first, and empty cells aren't shown", () => {
  const columns = [{ name: "day" }, { name: RAW }];
  const rows = [
    ["2024-01-31", "31.01.2024"],
    [null, null],
    ["2024-01-31", "31.01.2024"],
    [null, "soon"],
  ];
  expect(pairsOf(columns, rows, "day")).toEqual([
    ["soon", null],
    ["31.01.2024", "2024-01-31"],
  ]);
});
