import { Plus, X } from "lucide-preact";
import { useState } from "preact/hooks";
import { Button } from "../../components/button";
import { SelectField, TextField } from "../../components/field";
import { CHOICES, type Choice, choicesFor, type Filter, filtersOf, hintOf, takesValue } from "../../format/filter";
import type { ChartChoice } from "./choice";
import type { KnownColumn } from "./change";

interface Props {
  choice: ChartChoice;
  columns: readonly KnownColumn[];
  onChange: (choice: ChartChoice) => void;
}

const text = ({ column, operator, value }: Filter): string =>
  `${column} ${CHOICES[operator].words}${takesValue(operator) ? ` ${value}` : ""}`;

function withFilters(choice: ChartChoice, filters: NonNullable<ChartChoice["filters"]>): ChartChoice {
  const rest = { ...choice };
  delete rest.filters;
  return filters.length > 0 ? { ...rest, filters } : rest;
}

/** Filters of the rows, and a form for another one. */
export function Filters({ choice, columns, onChange }: Props) {
  const [adding, setAdding] = useState(false);
  const filters = choice.filters ?? [];
  return (
    <div class="build-filters">
      {filters.map((filter, at) => (
        <span key={`${at}${text(filter)}`} class="build-filter">
          <span class="cut">{text(filter)}</span>
          <button
            type="button"
            aria-label={`Remove filter ${text(filter)}`}
            onClick={() =>
              onChange(
                withFilters(
                  choice,
                  filters.filter((_, index) => index !== at),
                ),
              )
            }
          >
            <X aria-hidden="true" />
          </button>
        </span>
      ))}
      {!adding && (
        <Button variant="quiet" icon={<Plus />} onClick={() => setAdding(true)}>
          Add filter
        </Button>
      )}
      {adding && (
        <NewFilter
          columns={columns}
          onCancel={() => setAdding(false)}
          onAdd={(added) => {
            setAdding(false);
            onChange(withFilters(choice, [...filters, ...added]));
          }}
        />
      )}
    </div>
  );
}

interface NewProps {
  columns: readonly KnownColumn[];
  onAdd: (filters: (Filter & { type: string })[]) => void;
  onCancel: () => void;
}

function NewFilter({ columns, onAdd, onCancel }: NewProps) {
  const [name, setName] = useState(columns[0]?.name ?? "");
  const type = columns.find((one) => one.name === name)?.type ?? "string";
  const offered = choicesFor(type);
  const [operator, setOperator] = useState<Choice | undefined>();
  const [value, setValue] = useState("");
  const [mistake, setMistake] = useState<string>();
  const chosen = operator && offered.includes(operator) ? operator : (offered[0] ?? "eq");
  const submit = (event: Event) => {
    event.preventDefault();
    try {
      const found = filtersOf(name, type, chosen, value);
      if (found.length === 0) setMistake("Enter a value.");
      else onAdd(found.map((filter) => ({ ...filter, type })));
    } catch (thrown) {
      setMistake(thrown instanceof Error ? thrown.message : String(thrown));
    }
  };
  return (
    <form class="build-new-filter" aria-label="New filter" onSubmit={submit}>
      <SelectField
        label="Filter column"
        value={name}
        autofocus
        onChange={(event) => setName(event.currentTarget.value)}
      >
        {columns.map((one) => (
          <option key={one.name} value={one.name}>
            {one.name}
          </option>
        ))}
      </SelectField>
      <SelectField
        label="Operator"
        value={chosen}
        onChange={(event) => setOperator(event.currentTarget.value as Choice)}
      >
        {offered.map((one) => (
          <option key={one} value={one}>
            {CHOICES[one].words}
          </option>
        ))}
      </SelectField>
      {takesValue(chosen) && (
        <TextField
          label="Value"
          value={value}
          placeholder={hintOf(type, chosen)}
          error={mistake}
          onInput={(event) => {
            setValue(event.currentTarget.value);
            setMistake(undefined);
          }}
        />
      )}
      <div class="row">
        <Button variant="quiet" onClick={onCancel}>
          Cancel
        </Button>
        <Button type="submit">Add</Button>
      </div>
    </form>
  );
}
