/** Reads the first lines of a staged file. */
import type { Cell } from "../../api/types";
import { previewOf } from "../../tables/preview";
import { itemOf, type Dialect } from "../../tables/dialect";
import { stagedGlob, type Staged } from "../../uploads/staging";

/** Lines that are looked at. */
const LINES_MAX = 40;
/** Separates nothing: each line is one cell. */
const NO_DELIMITER = "\u0001";

/** The first lines of a staged file, empty ones included. @throws ApiFailure */
export async function firstLines(staged: Staged, dialect: Dialect): Promise<string[]> {
  const csv = {
    delimiter: NO_DELIMITER,
    quote: null,
    header: false,
    blank_lines: "null",
    null_values: [],
    ragged_rows: "pad",
    encoding: itemOf(dialect, "encoding"),
    record_terminator: itemOf(dialect, "record_terminator"),
  };
  const columns = [{ name: "line", from: 0, type: "string" }];
  const mapping = { table: "sample", files: [stagedGlob(staged)], csv, columns };
  const config = { version: 1, title: "", mappings: [mapping] };
  const { rows } = await previewOf(staged.slug, { config, key: staged.key, limit: LINES_MAX });
  return (rows ?? []).map((row) => ((row as Cell[])[0] as string | null) ?? "");
}
