import type { ComponentChildren, JSX, Ref } from "preact";
import "./button.css";

type Props = Omit<JSX.IntrinsicElements["button"], "icon" | "ref"> & {
  /** `primary`: the main action of a view. */
  variant?: "plain" | "primary" | "quiet" | "danger";
  /** The action is in progress; the button is disabled and shows it. */
  busy?: boolean | undefined;
  icon?: ComponentChildren;
  buttonRef?: Ref<HTMLButtonElement>;
};

export function Button({
  variant: look = "plain",
  busy,
  icon,
  children,
  class: extra,
  buttonRef,
  disabled,
  ...rest
}: Props) {
  return (
    <button
      type="button"
      {...rest}
      ref={buttonRef ?? null}
      class={`button ${look} ${typeof extra === "string" ? extra : ""}`}
      disabled={disabled ?? false}
      aria-busy={busy ?? false}
      aria-disabled={busy ?? false}
      onClick={busy ? (event) => event.preventDefault() : rest.onClick}
    >
      {icon}
      {children}
    </button>
  );
}

/** An icon button; `label` is its accessible name. */
export function IconButton({ label, ...rest }: Props & { label: string }) {
  return (
    <Button
      variant="quiet"
      {...rest}
      class={`icon-only ${typeof rest.class === "string" ? rest.class : ""}`}
      aria-label={label}
      title={rest.title ?? label}
    />
  );
}
