/** Finds the partition that holds a row, by its values. */
import { plain } from "../../format/values";
import { PARTITION_ESCAPED, PARTITION_NULL } from "../../api/rules";
import type { Column, Row } from "../../api/types";

function percent(text: string): string {
  return [...new TextEncoder().encode(text)]
    .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
    .join("");
}

function escaped(text: string): string {
  if (text === "." || text === "..") return percent(text);
  return text.replace(PARTITION_ESCAPED, percent);
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
    return { name: unescaped(name), value: value === PARTITION_NULL ? null : unescaped(value) };
  });
}

/** Partition for display. */
export const partitionText = (partition: string): string =>
  partsOf(partition)
    .map(({ name, value }) => `${name} = ${value ?? "null"}`)
    .join(", ");

/** A row's partition, built from `sibling`, another partition of the table. */
export function partitionOf(sibling: string, columns: readonly Column[], row: Row): string | undefined {
  const segments: string[] = [];
  for (const { name } of partsOf(sibling)) {
    const at = columns.findIndex((column) => column.name.toLowerCase() === name.toLowerCase());
    const value = row[at];
    if (value === undefined) return undefined;
    const text = plain(value);
    const mark = text === PARTITION_NULL ? `%5F${PARTITION_NULL.slice(1)}` : escaped(text);
    segments.push(`${escaped(name)}=${value === null ? PARTITION_NULL : mark}`);
  }
  return segments.join("/");
}
