/** Finds the file that holds a row, by the partition values in its path. */
import { plain } from "../../format/values";
import type { Column, Row } from "../../api/types";

const NULL_VALUE = "__HIVE_DEFAULT_PARTITION__";
/**
 * Characters that Hive escapes, and those that keys can't contain: control and bidirectional formatting characters.
 */
const ESCAPED = /["#%'*/:=?\\{[\]^\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

function percent(text: string): string {
  return [...new TextEncoder().encode(text)]
    .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
    .join("");
}

function escaped(text: string): string {
  if (text === "." || text === "..") return percent(text);
  return text.replace(ESCAPED, percent);
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Names and values of `day=2013-01-01/vendor=2`; null as null. */
export function partsOf(partition: string): { name: string; value: string | null }[] {
  if (partition === "") return [];
  return partition.split("/").map((segment) => {
    const [name = "", value = ""] = segment.split(/=(.*)/s);
    return { name: unescaped(name), value: value === NULL_VALUE ? null : unescaped(value) };
  });
}

/** Partition for display. */
export const partitionText = (partition: string): string =>
  partsOf(partition)
    .map(({ name, value }) => `${name} = ${value ?? "null"}`)
    .join(", ");

/** Key of the first file of a row's partition, built from `sibling`, another partition of the table. */
export function fileOf(table: string, sibling: string, columns: readonly Column[], row: Row): string | undefined {
  const segments: string[] = [];
  for (const { name } of partsOf(sibling)) {
    const at = columns.findIndex((column) => column.name.toLowerCase() === name.toLowerCase());
    const value = row[at];
    if (value === undefined) return undefined;
    const text = plain(value);
    const mark = text === NULL_VALUE ? `%5F${NULL_VALUE.slice(1)}` : escaped(text);
    segments.push(`${escaped(name)}=${value === null ? NULL_VALUE : mark}`);
  }
  return [table, ...segments, "part-00000.parquet"].join("/");
}
