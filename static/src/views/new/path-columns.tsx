import { Plus, X } from "lucide-preact";
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
export const PathColumns = ({ names, columns, locked, onChange }: Props) => (
  <>
    {columns.map((column, at) => (
      <div key={column.id} class="new-naming">
        <PathFields
          names={names}
          column={column}
          locked={locked}
          onChange={(next) => onChange(columns.with(at, next))}
        />
        <IconButton
          label={`Remove ${column.name}`}
          icon={<X />}
          disabled={locked}
          onClick={() => onChange(columns.toSpliced(at, 1))}
        />
      </div>
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
