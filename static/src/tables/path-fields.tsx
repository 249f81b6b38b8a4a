import { TextField } from "../components/field";
import { fromPathOf, type PathColumn, wordIn } from "./path-columns";

interface Props {
  /** Names of the table's files. */
  names: readonly string[];
  column: PathColumn;
  locked?: boolean;
  onChange: (column: PathColumn) => void;
}

const SHOWN = 3;

/** Name and values of a column from file names, with what some files have. */
export function PathFields({ names, column, locked = false, onChange }: Props) {
  const part = fromPathOf(column.value);
  const found = typeof part === "string" ? [] : names.map((name) => [wordIn(name, part), name] as const);
  // A file of each value, those without one first.
  const shown = found
    .filter(([word], at) => found.findIndex(([one]) => one === word) === at)
    .toSorted(([one], [other]) => Number(one !== undefined) - Number(other !== undefined));
  return (
    <>
      <TextField
        label="Column from file names"
        value={column.name}
        disabled={locked}
        onInput={(event) => onChange({ ...column, name: event.currentTarget.value.trim() })}
      />
      <TextField
        label="Values"
        hint={
          typeof part === "string"
            ? "{} is the value, and * any text."
            : shown
                .slice(0, SHOWN)
                .map(([word, name]) => `${name}: ${word ?? "no value"}`)
                .join(" · ")
        }
        value={column.value}
        disabled={locked}
        onInput={(event) => onChange({ ...column, value: event.currentTarget.value })}
      />
    </>
  );
}
