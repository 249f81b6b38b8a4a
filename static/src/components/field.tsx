import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import "./field.css";

interface FieldProps {
  label: string;
  /** Validation message: found, expected. */
  error?: string | undefined;
  hint?: ComponentChildren;
  /** Hides the label visually. */
  bare?: boolean;
}

function Field({
  label,
  error,
  hint,
  bare,
  children,
}: FieldProps & { children: (ids: { id: string; "aria-describedby"?: string }) => ComponentChildren }) {
  const id = useId();
  const description = error ?? hint;
  return (
    <div class="field">
      <label for={id} class={bare ? "for-readers" : ""}>
        {label}
      </label>
      {children(description ? { id, "aria-describedby": `${id}-description` } : { id })}
      {description && (
        <p id={`${id}-description`} class={error ? "field-error" : "field-hint"} role={error ? "alert" : undefined}>
          {description}
        </p>
      )}
    </div>
  );
}

type InputProps = FieldProps & Omit<JSX.IntrinsicElements["input"], "label">;

export function TextField({ label, error, hint, bare, class: extra, ...rest }: InputProps) {
  return (
    <Field label={label} error={error} hint={hint} bare={bare ?? false}>
      {(ids) => (
        <input
          type="text"
          autocomplete="off"
          spellcheck={false}
          {...rest}
          {...ids}
          class={`input ${typeof extra === "string" ? extra : ""}`}
          aria-invalid={error ? true : undefined}
        />
      )}
    </Field>
  );
}

type SelectProps = FieldProps & Omit<JSX.IntrinsicElements["select"], "label">;

export function SelectField({ label, error, hint, bare, children, ...rest }: SelectProps) {
  return (
    <Field label={label} error={error} hint={hint} bare={bare ?? false}>
      {(ids) => (
        <select {...rest} {...ids} class="input" aria-invalid={error ? true : undefined}>
          {children}
        </select>
      )}
    </Field>
  );
}

export function Checkbox({
  label,
  hint,
  ...rest
}: Omit<JSX.IntrinsicElements["input"], "label"> & { label: ComponentChildren; hint?: string }) {
  return (
    <label class="checkbox" title={hint}>
      <input type="checkbox" {...rest} />
      <span>{label}</span>
    </label>
  );
}
