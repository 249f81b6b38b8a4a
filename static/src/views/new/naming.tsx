import type { Inferred } from "../../api/types";
import { Checkbox, SelectField, TextField } from "../../components/field";
import { counted } from "../../format/number";
import { MessageText } from "../../components/message-text";
import { partitionings, partitionWords, REJECT_SHARES, sortSuggestion, tableProblem, type Draft } from "./draft";

const SHARES: Record<number, string> = {
  0: "None (fail the run)",
  0.01: "up to 1% of the rows",
  0.1: "up to 10% of the rows",
  1: "any number",
};

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
      <SelectField
        label="Rejected rows allowed"
        hint="Rejected rows are saved with the reason."
        value={String(draft.rejectsMax)}
        disabled={locked}
        onChange={(event) => onChange({ rejectsMax: Number(event.currentTarget.value) })}
      >
        {REJECT_SHARES.map((share) => (
          <option key={share} value={String(share)}>
            {SHARES[share]}
          </option>
        ))}
      </SelectField>
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
