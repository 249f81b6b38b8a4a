import type { ComponentChildren } from "preact";
import { asFailure } from "../api/failure";
import { remedyOf } from "../format/remedies";
import { Button } from "./button";
import { MessageText } from "./message-text";
import "./states.css";

/** Empty state with a suggested next step. */
export function Empty({
  title,
  children,
  actions,
}: {
  title: string;
  children?: ComponentChildren;
  actions?: ComponentChildren;
}) {
  return (
    <div class="state">
      <h2>{title}</h2>
      {children && <div class="secondary">{children}</div>}
      {actions && <div class="row wrap">{actions}</div>}
    </div>
  );
}

interface FailedProps {
  /** The failed action: "Couldn't load the tables". */
  title: string;
  error: unknown;
  onRetry?: (() => void) | undefined;
  actions?: ComponentChildren;
  /** Whether reloading the page may help. */
  reload?: boolean;
}

/** Error with cause and remedy. */
export function Failed({ title, error, onRetry, actions, reload }: FailedProps) {
  const failure = asFailure(error);
  const remedy = remedyOf(failure);
  return (
    <div class="state failed" role="alert">
      <h2>{title}</h2>
      <p>
        <MessageText text={failure.message} />
      </p>
      {remedy && <p class="secondary">{remedy}</p>}
      <div class="row wrap">
        {reload || failure.code === "outdated" ? (
          // Asks before it loses unsaved work.
          <Button variant="primary" onClick={() => location.reload()}>
            Reload
          </Button>
        ) : (
          onRetry && <Button onClick={onRetry}>Try again</Button>
        )}
        {actions}
      </div>
      {failure.requestId && (
        <p class="dim">
          Request <code>{failure.requestId}</code>
        </p>
      )}
    </div>
  );
}

/** Placeholder that takes the room of the content. */
export function Skeleton({ lines = 3, label = "Loading" }: { lines?: number; label?: string }) {
  return (
    <div class="skeleton" role="status" aria-label={label}>
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} />
      ))}
    </div>
  );
}

/** A note: information, warning or error. */
export function Note({
  tone = "neutral",
  children,
}: {
  tone?: "neutral" | "ok" | "warn" | "bad" | "run";
  children: ComponentChildren;
}) {
  return (
    <div class={`note ${tone}`} role={tone === "bad" ? "alert" : undefined}>
      {children}
    </div>
  );
}
