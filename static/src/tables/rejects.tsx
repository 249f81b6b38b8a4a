import { SelectField } from "../components/field";

/** Ratios of rejected rows to choose from, ascending. */
export const REJECT_RATIOS = [0, 0.01, 0.1, 1];

const WORDS: Record<number, string> = {
  0: "None (fail the run)",
  0.01: "up to 1% of the rows",
  0.1: "up to 10% of the rows",
  1: "any number",
};

interface Props {
  ratio: number;
  hint: string;
  disabled?: boolean;
  onChange: (ratio: number) => void;
}

/** Choice of the ratio of rejected rows that a run allows; another one that is set stays an option. */
export function RejectsField({ ratio, hint, disabled = false, onChange }: Props) {
  const ratios = REJECT_RATIOS.includes(ratio) ? REJECT_RATIOS : [...REJECT_RATIOS, ratio];
  return (
    <SelectField
      label="Rejected rows allowed"
      hint={hint}
      value={String(ratio)}
      disabled={disabled}
      onChange={(event) => onChange(Number(event.currentTarget.value))}
    >
      {ratios.map((one) => (
        <option key={one} value={String(one)}>
          {WORDS[one] ?? `up to ${String(one * 100)}% of the rows`}
        </option>
      ))}
    </SelectField>
  );
}
