import type { ComponentProps } from "preact";
import { useState } from "preact/hooks";
import { dayExample, dayOf } from "../format/typed";
import { TextField } from "./field";

type Props = Omit<ComponentProps<typeof TextField>, "type" | "onChange" | "onInput"> & {
  value: string;
  /** `2024-05-31`, or empty. */
  onDay: (day: string) => void;
};

/** A date input that also takes a pasted date as the locale writes it, and says why it takes none. */
export function DayField({ onDay, error, ...rest }: Props) {
  const [mistake, setMistake] = useState<string>();
  return (
    <TextField
      {...rest}
      type="date"
      error={mistake ?? error}
      onChange={(event) => {
        const { validity, value } = event.currentTarget;
        // A date that isn't whole has no value.
        setMistake(validity.badInput ? "There is no such date." : undefined);
        if (!validity.badInput) onDay(value);
      }}
      onPaste={(event) => {
        const text = event.clipboardData?.getData("text").trim();
        if (!text) return;
        event.preventDefault();
        const day = dayOf(text);
        setMistake(day === undefined ? `found ${text}, expected a date like 2013-01-31 or ${dayExample()}` : undefined);
        if (day !== undefined) onDay(day);
      }}
    />
  );
}
