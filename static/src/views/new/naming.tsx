import type { Inferred } from "../../api/types";
import { Checkbox, SelectField, TextField } from "../../components/field";
import { counted } from "../../format/number";
import { MessageText } from "../../components/message-text";
import { RejectsField } from "../../tables/rejects";
import { partitionings, partitionWords, sortSuggestion, tableProblem, type Draft } from "./draft";

interface Props {
  draft: Draft;
  inferred: Inferred;
  /** Names of tables that exist. */
  taken: ReadonlySet<string>;
  locked: boolean;
  nameLocked: boolean;
  onChange: (change: Partial<Draft>) => void;
}

/** Name of the table, partitioning, and rejected rows. */
export function TableNaming({ draft, inferred, taken, locked, nameLocked, onChange }: Props) {
  const suggested = partitionings(inferred);
  const chosen = suggested[draft.partition];
  const sort = sortSuggestion(inferred);
  const atLeast = inferred.sample.whole && inferred.files_read.length === 1 ? "" : "at least ";
  const files = (n: number | undefined) => (n === undefined ? "" : ` · ${atLeast}${counted(n, "file")}`);
  return (
    <div class="new-naming">
      <TextField
        label="Table"
        value={draft.table}
        error={tableProblem(draft.table, taken)}
        hint="The name used in SQL."
        disabled={locked || nameLocked}
        onInput={(event) => onChange({ table: event.currentTarget.value.trim() })}
      />
      <SelectField
        label="Partitions"
        hint={
          chosen ? <MessageText text={chosen.why} /> : "Partitions speed up large tables. Small tables don't need them."
        }
        value={String(draft.partition)}
        disabled={locked}
        onChange={(event) => onChange({ partition: Number(event.currentTarget.value) })}
      >
        <option value="-1">none · 1 file</option>
        {suggested.map(({ value, files: n }, at) => (
          <option key={at} value={String(at)}>
            {partitionWords(value) + files(n)}
          </option>
        ))}
      </SelectField>
      <RejectsField
        ratio={draft.rejectsMax}
        hint="Rejected rows are saved with the reason."
        disabled={locked}
        onChange={(rejectsMax) => onChange({ rejectsMax })}
      />
      {typeof sort === "string" && (
        <div class="new-sort">
          <Checkbox
            label={`Sort rows by ${sort}`}
            checked={draft.sorted}
            disabled={locked}
            onChange={(event) => onChange({ sorted: event.currentTarget.checked })}
          />
        </div>
      )}
    </div>
  );
}
