import { Plus, X } from "lucide-preact";
import { Button } from "../../components/button";
import { TextField } from "../../components/field";
import { fromPathOf, type PathColumn, wordIn, wordsOfNames } from "./path-columns";

interface Props {
  /** Names of the table's files. */
  names: readonly string[];
  columns: readonly PathColumn[];
  locked: boolean;
  onChange: (columns: PathColumn[]) => void;
}

const SHOWN = 3;

/** Columns whose values are in the names of the files, such as a region. */
export function PathColumns({ names, columns, locked, onChange }: Props) {
  const add = () =>
    onChange([...columns, { id: Date.now(), name: "file", value: wordsOfNames(names).join(", ") || "{}" }]);
  return (
    <>
      {columns.map((column, at) => {
        const put = (change: Partial<PathColumn>) => onChange(columns.with(at, { ...column, ...change }));
        const part = fromPathOf(column.value);
        const found = typeof part === "string" ? [] : names.map((name) => [name, wordIn(name, part)] as const);
        const without = found.filter(([, word]) => word === undefined);
        return (
          <div key={column.id} class="new-naming">
            <TextField
              label="Column from file names"
              value={column.name}
              disabled={locked}
              onInput={(event) => put({ name: event.currentTarget.value.trim() })}
            />
            <TextField
              label="Values"
              hint={
                found.length === 0
                  ? "{} is the value, and * any text."
                  : [...without, ...found.filter(([, word]) => word)]
                      .slice(0, SHOWN)
                      .map(([name, word]) => `${name}: ${word ?? "no value"}`)
                      .join(" · ")
              }
              value={column.value}
              disabled={locked}
              onInput={(event) => put({ value: event.currentTarget.value })}
            />
            <Button
              variant="quiet"
              icon={<X />}
              aria-label={`Remove ${column.name}`}
              disabled={locked}
              onClick={() => onChange(columns.toSpliced(at, 1))}
            />
          </div>
        );
      })}
      <Button variant="quiet" icon={<Plus />} disabled={locked} onClick={add}>
        Add column from file names
      </Button>
    </>
  );
}
