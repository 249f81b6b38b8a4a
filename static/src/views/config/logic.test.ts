import { rowsOfDetail } from "./dry-run";
import { describe, expect, it } from "vitest";
import { shownProblems } from "./validation";
import { formatted, syntaxProblem } from "../../format/json";
import { matcher } from "../../uploads/globs";
import { freeName, insertMapping } from "./insert";
import { chosen, conflictsOf, merge } from "./merge";
import { isApplied, nextRun, outlook, outlookText, type Outlook } from "./outlook";
import type { PipelineStatus, TableStatus } from "../../api/types";

describe("formatting", () => {
  it("keeps values on one line if they fit and contain no objects", () => {
    const text =
      '{"version":1,"mappings":[{"table":"t","csv":{"null_values":["NA"]},"columns":[{"name":"a","type":"int8"}]}]}';
    expect(formatted(text)).toBe(`{
  "version": 1,
  "mappings": [
    {
      "table": "t",
      "csv": { "null_values": ["NA"] },
      "columns": [
        { "name": "a", "type": "int8" }
      ]
    }
  ]
}
`);
  });
  it("is idempotent and keeps every digit", () => {
    const once = formatted('{"a":1.10,"b":12345678901234567890,"c":"\\u00e9","d":[],"e":{}}');
    expect(once).toContain("1.10");
    expect(once).toContain("12345678901234567890");
    expect(formatted(once)).toBe(once);
  });
});

describe("invalid JSON", () => {
  it.each([
    ['{"a": 1 "b": 2}', 'expected `,` or `}`, found `"b"`', 8],
    ['{"a": }', "expected a value, found `}`", 6],
    ['{"a": [1, ]}', "expected a value, found `]`", 10],
    ['{"a": 1,}', "expected a name in quotes, found `}`", 8],
    ['{"a": tru}', "expected a value, found `tru`", 6],
    ["", "expected a value, found the end", 0],
    ["{} x", "expected the end, found `x`", 3],
    ['{"a": "x\n}', "missing closing quote", 6],
    ["// c\n{}", "expected a value, found `/`", 0],
  ])("%s is reported with its position", (text, message, offset) => {
    expect(syntaxProblem(text)).toMatchObject({ message, offset });
  });
  it("is reported with the browser's message", () => {
    for (const text of [
      "[1e5, -0.5, 1E+2]",
      "[01]",
      '["\\x"]',
      "[1.]",
      "[-]",
      '"\\ud800"',
      " null\n",
      "nul",
      "[\u00a01]",
    ]) {
      const parses = () => (JSON.parse(text), true);
      const fine = (() => {
        try {
          return parses();
        } catch {
          return false;
        }
      })();
      expect(syntaxProblem(text) === undefined, text).toBe(fine);
    }
  });
});

describe("merging", () => {
  const base = "a\nb\nc\nd\ne\n";
  it("takes changes of one side", () => {
    const { pieces } = merge(base, "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n");
    expect(conflictsOf(pieces)).toEqual([]);
    expect(chosen(pieces, [])).toBe("A\nb\nc\nd\nE\n");
  });
  it("takes equal changes of both sides once", () => {
    expect(chosen(merge(base, "a\nX\nc\nd\ne\n", "a\nX\nc\nd\ne\n").pieces, [])).toBe("a\nX\nc\nd\ne\n");
  });
  it("reports different changes of both sides as conflicts", () => {
    const { pieces } = merge(base, "a\nB\nc\nd\ne\n", "a\nß\nc\nd\ne\n");
    expect(conflictsOf(pieces)).toEqual([{ kind: "conflict", base: ["b"], mine: ["B"], theirs: ["ß"] }]);
    expect(chosen(pieces, [undefined])).toBeUndefined();
    expect(chosen(pieces, ["theirs"])).toBe("a\nß\nc\nd\ne\n");
    expect(chosen(pieces, ["both"])).toBe("a\nB\nß\nc\nd\ne\n");
    expect(chosen(pieces, [{ text: "x\ny" }])).toBe("a\nx\ny\nc\nd\ne\n");
    expect(chosen(pieces, [{ text: "" }])).toBe("a\nc\nd\ne\n");
  });
  it("formats all three versions if that aligns them", () => {
    const wide = '{"title":"x","version":1,"description":"y"}';
    const merging = merge(wide, wide.replace('"x"', '"mine"'), wide.replace('"y"', '"theirs"'));
    expect(merging.formatted).toBe(true);
    const text = chosen(
      merging.pieces,
      conflictsOf(merging.pieces).map(() => "both"),
    );
    expect(text).toContain("mine");
    expect(text).toContain("theirs");
  });
  it("without a base version reports every difference as a conflict", () => {
    const { pieces } = merge(undefined, "a\nB\nc\n", "a\nß\nc\n");
    expect(conflictsOf(pieces)).toHaveLength(1);
  });
});

describe("globs", () => {
  it.each([
    ["trips/**/*.csv", "trips/a.csv", true],
    ["trips/**/*.csv", "trips/x/y/a.csv", true],
    ["*.csv", "x/a.csv", false],
    ["*.{csv,csv.gz}", "a.csv.gz", true],
    ["a?[0-9].csv", "ab1.csv", true],
    ["a?[!0-9].csv", "ab1.csv", false],
    ["a.csv", "abcsv", false],
    ["**", "x/y", true],
    ["{a", "a", false],
  ])("%s for %s: %s", (glob, key, is) => expect(matcher([glob])(key)).toBe(is));
});

describe("effect of the next run", () => {
  const schema = {
    properties: {
      mappings: {
        items: {
          properties: {
            csv: { properties: { header: { default: true } }, default: { header: true } },
            columns: { items: { properties: { nullable: { default: true } } } },
          },
        },
      },
    },
  };
  const table = { table: "t", files: ["a.csv"], columns: [{ name: "x", type: "int8" }] };
  const config = (...mappings: object[]) => ({ version: 1, mappings });
  const changes = (before: object, after: object) => outlook(before, after, schema).map((one) => one.change);

  it("is none for default values and for pipeline settings", () => {
    const spelt = { ...table, csv: { header: true }, columns: [{ name: "x", type: "int8", nullable: true }] };
    expect(changes(config(table), { ...config(spelt), title: "T" })).toEqual([]);
  });
  it("depends on the changed fields of a table", () => {
    const before = config(table);
    expect(changes(before, config({ ...table, files: ["b.csv"] }))).toEqual(["files"]);
    expect(changes(before, config({ ...table, variants: [{ files: ["b.csv"] }] }))).toEqual(["variants"]);
    expect(changes(before, config({ ...table, csv: { header: false } }))).toEqual(["rebuilt"]);
    expect(changes(before, config({ ...table, columns: [{ name: "x", type: "int16" }] }))).toEqual(["shape"]);
    expect(changes(before, config({ ...table, partition_by: ["x"] }))).toEqual(["shape"]);
    expect(changes(before, config({ ...table, rejects: { max_rows: 5 } }))).toEqual(["quiet"]);
    for (const setting of [
      { keep_history: "30d" },
      { freshness: "26h" },
      { publish: ["delta"] },
      { when_removed: "keep_rows" },
      { empty_files: "fail" },
      { parquet: { readers: ["duckdb"] } },
    ])
      expect(changes(before, config({ ...table, ...setting }))).toEqual(["quiet"]);
    expect(changes(before, config({ ...table, parquet: { row_group_rows: 5_000 } }))).toEqual(["rebuilt"]);
    expect(changes(before, config({ ...table, checks: [{ name: "c", assert: "x", on_fail: "warn" }] }))).toEqual([
      "quiet",
    ]);
    expect(changes(before, config({ ...table, checks: [{ name: "c", assert: "x" }] }))).toEqual(["rebuilt"]);
  });
  it("builds new tables and keeps removed ones", () => {
    expect(outlook(config(table), config({ ...table, table: "u" }), schema)).toEqual([
      { table: "u", change: "new" },
      { table: "t", change: "removed" },
    ]);
  });
});

describe("the next run", () => {
  const none = { count: 0, first: [] };
  const status = (more: Partial<TableStatus>) =>
    ({
      tables: [{ name: "t", state: "applied", pending: none, removed: { ...none, rows: 0 }, ...more }],
    }) as unknown as PipelineStatus;
  const said = (edited: Outlook[], more: Partial<TableStatus>) => nextRun(edited, status(more)).map(outlookText);

  it("changes no table that is up to date with the saved config and its files", () => expect(said([], {})).toEqual([]));
  it("applies a saved config that no run has applied, also after a failed run", () => {
    expect(said([], { state: "changed" })).toEqual([
      "was changed by a saved config that isn't applied yet; the next run applies it.",
    ]);
    expect(said([{ table: "t", change: "quiet" }], { state: "changed" })[0]).toContain("isn't applied yet");
    expect(said([], { state: "new" })).toEqual(["is new and will be built from the matching files."]);
  });
  it("reads files that wait in the lake, and drops the rows of deleted ones", () => {
    const pending = { count: 2, first: ["a.csv", "b.csv"] };
    expect(said([], { pending })).toEqual(["reads 2 new or changed files."]);
    expect(said([], { pending, removed: { count: 1, rows: 5, first: ["c.csv"] } })).toEqual([
      "reads 2 new or changed files and removes the rows of 1 deleted file.",
    ]);
  });
  it("does what the edited config says first", () =>
    expect(nextRun([{ table: "t", change: "rebuilt" }], status({ state: "changed" }))).toEqual([
      { table: "t", change: "rebuilt" },
    ]));
});

describe("adding a mapping", () => {
  const mapping = { table: "t", files: ["t.csv"], columns: [{ name: "a", type: "int8" }] };
  it.each([
    "",
    "{}",
    '{ "version": 1 }',
    '{\n  "version": 1,\n  "mappings": []\n}\n',
    '{\n  "version": 1,\n  "mappings": [\n    { "table": "s" }\n  ]\n}\n',
  ])("to %j appends it to the config", (text) => {
    const inserted = insertMapping(text, mapping, "p");
    const config = JSON.parse(inserted?.text ?? "") as { mappings: { table: string }[] };
    expect(config.mappings.at(-1)?.table).toBe("t");
  });
  it("gives it a unique name, and keeps the other text", () => {
    const text = '{"mappings": [ {"table":"t"} ],   "title": "x"}';
    const inserted = insertMapping(text, mapping, "p");
    expect(inserted?.text).toContain('"table": "t_2"');
    expect(inserted?.text.startsWith('{"mappings": [ {"table":"t"},')).toBe(true);
    expect(inserted?.text.endsWith('],   "title": "x"}')).toBe(true);
    expect(freeName("t", new Set(["t", "t_2"]))).toBe("t_3");
  });
  it("is left to the user if the text has no place for it", () => {
    expect(insertMapping("[", mapping, "p")).toBeUndefined();
    expect(insertMapping('{"mappings": 1}', mapping, "p")).toBeUndefined();
  });
});

describe("problems and warnings", () => {
  const text = '{\n  "b": 1,\n  "a": 2\n}\n';
  const at = (path: string) => ({ kind: "invalid_value" as const, message: path, path });
  it("are marked at their positions, problems first", () => {
    const shown = shownProblems(text, [at("/a"), at("/b")], [at("/b")]);
    expect(shown.map(({ severity, line, path }) => [severity, line, path])).toEqual([
      ["error", 2, "/b"],
      ["error", 3, "/a"],
      ["warning", 2, "/b"],
    ]);
  });
  it("are hidden while the text has a syntax error", () => {
    expect(shownProblems("{", [at("/a")], [at("/b")])).toHaveLength(1);
  });
});

describe("the failure of a dry run", () => {
  it("lists the rejected rows of its detail by file and line", () => {
    const detail =
      "`in/b.csv` line 2: column `price`: expected float64, found `x` (wrong_type)\n`b.csv` line 7: the row has 3 cells\ncorrect the files or the mapping";
    expect(rowsOfDetail(detail)).toEqual({
      rows: [
        {
          file: "in/b.csv",
          line: 2,
          column: "price",
          value: "x",
          message: "expected float64, found `x` (wrong_type)",
        },
        { file: "b.csv", line: 7, column: undefined, value: "", message: "the row has 3 cells" },
      ],
      rest: "correct the files or the mapping",
    });
  });
});

it("a saved config is applied by a run that starts later and completes", () => {
  const job = (id: string, status: "queued" | "running" | "completed" | "failed") => ({ job_id: id, status });
  const before = new Set(["a", "b"]);
  expect(isApplied([job("b", "completed"), job("a", "completed")], before)).toBe(false);
  expect(isApplied([job("c", "running"), job("b", "completed")], before)).toBe(false);
  expect(isApplied([job("c", "failed")], before)).toBe(false);
  expect(isApplied([job("d", "failed"), job("c", "completed")], before)).toBe(true);
});
