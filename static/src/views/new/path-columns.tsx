import { Plus, X } from "lucide-preact";
import { useEffect, useRef } from "preact/hooks";
import { Button, IconButton } from "../../components/button";
import { newPathColumn, type PathColumn } from "../../tables/path-columns";
import { PathFields } from "../../tables/path-fields";

interface Props {
  /** Names of the table's files. */
  names: readonly string[];
  columns: readonly PathColumn[];
  locked: boolean;
  onChange: (columns: PathColumn[]) => void;
}

/** Columns whose values are in the names of the files, such as a region. */
export function PathColumns({ names, columns, locked, onChange }: Props) {
  const first = useRef(columns);
  return (
    <>
      {columns.map((column, at) => (
        <PathColumnFields
          key={column.id}
          names={names}
          column={column}
          isNew={!first.current.some(({ id }) => id === column.id)}
          locked={locked}
          onChange={(next) => onChange(columns.with(at, next))}
          onRemove={() => onChange(columns.toSpliced(at, 1))}
        />
      ))}
      <div class="row">
        <Button
          variant="quiet"
          icon={<Plus />}
          disabled={locked}
          onClick={() => onChange([...columns, newPathColumn(names)])}
        >
          Add column from file names
        </Button>
      </div>
    </>
  );
}

interface FieldsProps {
  names: readonly string[];
  column: PathColumn;
  /** Was just added: its name comes next. */
  isNew: boolean;
  locked: boolean;
  onChange: (column: PathColumn) => void;
  onRemove: () => void;
}

function PathColumnFields({ isNew, onRemove, ...fields }: FieldsProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isNew) return;
    box.current?.scrollIntoView({ block: "center" });
    box.current?.querySelector("input")?.select();
    // Once, when it is added.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  return (
    <div class="new-naming" ref={box}>
      <PathFields {...fields} />
      <IconButton label={`Remove ${fields.column.name}`} icon={<X />} disabled={fields.locked} onClick={onRemove} />
    </div>
  );
}
