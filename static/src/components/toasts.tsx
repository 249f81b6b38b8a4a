import { signal } from "@preact/signals";
import { X } from "lucide-preact";
import { useEffect, useRef } from "preact/hooks";
import { asFailure, withProblems } from "../api/failure";
import { IconButton } from "./button";
import { MessageText } from "./message-text";
import "./toasts.css";

interface Toast {
  id: number;
  tone: "ok" | "bad" | "neutral";
  text: string;
  action?: { label: string; run: () => void };
}

const SHOWN_MS = 6_000;
const TOASTS_MAX = 4;
const toasts = signal<Toast[]>([]);
let last = 0;

function show(toast: Omit<Toast, "id">): void {
  last += 1;
  const id = last;
  toasts.value = [...toasts.value, { ...toast, id }].slice(-TOASTS_MAX);
  if (!isHeld) schedule(id, toast.tone);
}

/** Timers of the toasts that go by themselves. Errors stay until dismissed. */
const timers = new Map<number, ReturnType<typeof setTimeout>>();
/** Whether a pointer or the focus is on the toasts. */
let isHeld = false;

function schedule(id: number, tone: Toast["tone"]): void {
  if (tone !== "bad")
    timers.set(
      id,
      setTimeout(() => drop(id), SHOWN_MS),
    );
}

/** Keeps the toasts while a pointer or the focus is on them; then each has its full time again. */
function hold(held: boolean): void {
  if (held === isHeld) return;
  isHeld = held;
  for (const timer of timers.values()) clearTimeout(timer);
  timers.clear();
  if (!held) for (const { id, tone } of toasts.value) schedule(id, tone);
}

function drop(id: number): void {
  clearTimeout(timers.get(id));
  timers.delete(id);
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** Toast messages. */
export const toast = {
  done: (text: string, action?: Toast["action"]) => show({ tone: "ok", text, ...(action ? { action } : {}) }),
  /** `what` failed: "Couldn't delete the file". Replaces what was said about an earlier attempt. */
  failed: (what: string, error: unknown) => {
    toast.resolved(what);
    const failure = asFailure(error);
    const { code } = failure;
    const message = withProblems(failure);
    const action = code === "outdated" && { action: { label: "Reload", run: () => location.reload() } };
    show({ tone: "bad", text: `${what}: ${message}`, ...action });
  },
  /** `what` has succeeded after all. */
  resolved: (what: string) => {
    toasts.value = toasts.value.filter(({ tone, text }) => tone !== "bad" || !text.startsWith(`${what}: `));
  },
};

export function Toasts() {
  const box = useRef<HTMLDivElement>(null);
  const shown = toasts.value;
  // Into the top layer, above a dialog that was opened before.
  useEffect(() => {
    const node = box.current;
    if (!node || typeof node.showPopover !== "function") return;
    if (node.matches(":popover-open")) node.hidePopover();
    if (shown.length > 0) node.showPopover();
    // A toast that was dismissed takes pointer and focus along, without an event.
    if (!node.matches(":hover, :focus-within")) hold(false);
  }, [shown]);
  return (
    <div
      ref={box}
      popover="manual"
      class="toasts"
      role="status"
      aria-live="polite"
      onMouseEnter={() => hold(true)}
      onMouseLeave={(event) => hold(event.currentTarget.matches(":focus-within"))}
      onFocusIn={() => hold(true)}
      onFocusOut={(event) => hold(event.currentTarget.matches(":hover"))}
    >
      {toasts.value.map((toast) => (
        <div key={toast.id} class={`toast ${toast.tone}`}>
          <span class="grow">
            <MessageText text={toast.text} />
          </span>
          {toast.action && (
            <button
              type="button"
              class="toast-action"
              onClick={() => {
                toast.action?.run();
                drop(toast.id);
              }}
            >
              {toast.action.label}
            </button>
          )}
          <IconButton label="Dismiss" icon={<X />} onClick={() => drop(toast.id)} />
        </div>
      ))}
    </div>
  );
}
