/** A chart in the URL. Source and filters are those of the view. */
import { choiceOf } from "../../boards/builder/checked";
import type { ChartChoice } from "../../boards/builder/choice";

/** The value for the suggested chart. */
export const SUGGESTED = "1";

export function printChoice(choice: ChartChoice): string {
  const rest: Partial<ChartChoice> = { ...choice };
  delete rest.source;
  delete rest.filters;
  return JSON.stringify(rest);
}

/** Parses a chart; undefined for the suggested or an invalid one. */
export function parseChoice(text: string | undefined, table: string): ChartChoice | undefined {
  if (text === undefined || text === SUGGESTED) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null
      ? choiceOf({ ...value, source: { table }, filters: [] })
      : undefined;
  } catch {
    return undefined;
  }
}
