import { useLayoutEffect } from "preact/hooks";

/** A keyboard shortcut, as the help panel shows it. */
export interface Shortcut {
  /** `"/"`, `"g d"` (a sequence), `"mod+Enter"` (Ctrl, or Cmd on a Mac). */
  keys: string;
  does: string;
  run?: () => void;
  /** Default: the view that registers it. */
  scope?: "pipeline" | "everywhere";
}

/** Maximum time between the keys of a sequence, in milliseconds. */
const SEQUENCE_MS = 1_200;
export const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);

let first: { key: string; at: number } | undefined;
const active: Shortcut[][] = [];

/** Whether an element takes key presses as text. */
function takesText(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return (
    target.isContentEditable || target.shadowRoot !== null || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName)
  );
}

/** Key pressed with Ctrl or Cmd: a letter in upper case with Shift, whatever Caps Lock says. */
function withMod({ key, shiftKey }: KeyboardEvent): string {
  if (key.length > 1) return key;
  return shiftKey ? key.toUpperCase() : key.toLowerCase();
}

function pressed(event: KeyboardEvent): void {
  const mod = isMac ? event.metaKey : event.ctrlKey;
  if (event.defaultPrevented || event.altKey || (!mod && takesText(event.target))) return;
  if (document.querySelector("dialog[open]") && event.key !== "Escape") return;
  const key = mod ? `mod+${withMod(event)}` : event.key;
  const before = first && event.timeStamp - first.at < SEQUENCE_MS ? first.key : undefined;
  first = { key, at: event.timeStamp };
  const wanted = before ? [`${before} ${key}`, key] : [key];
  const found = wanted.map((keys) => active.flat().findLast((one) => one.keys === keys && one.run)).find(Boolean);
  if (!found?.run) return;
  event.preventDefault();
  first = undefined;
  found.run();
}

document.addEventListener("keydown", pressed);

/**
 * Registers shortcuts while the component is mounted; the last registration wins. `shortcuts` may be a new array on
 * each render.
 */
export function useShortcuts(shortcuts: Shortcut[]): void {
  useLayoutEffect(() => {
    active.push(shortcuts);
    return () => {
      active.splice(active.indexOf(shortcuts), 1);
    };
  });
}

/** All active shortcuts, for the help panel. */
export const activeShortcuts = (): Shortcut[] => active.flat();

function printedKey(key: string): string[] {
  if (key === "mod") return [isMac ? "⌘" : "Ctrl"];
  // `r` and `R` are two shortcuts.
  if (/^[A-Z]$/.test(key)) return ["Shift", key];
  return [key.length === 1 ? key.toUpperCase() : key];
}

/** Key labels of `mod+Enter`: `⌘ Enter` or `Ctrl Enter`; of `R`: `Shift R`. */
export const printed = (keys: string): string[] => keys.split(/[ +]/).flatMap(printedKey);
