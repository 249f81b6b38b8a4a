import { signal, type Signal } from "@preact/signals";

/** Beyond this, in characters, a browser's store is not the place. */
const TEXT_MAX = 512 * 1024;

/**
 * A value that this browser keeps under `name` (histories, widths, text that isn't saved yet).
 * A store that is full, switched off or holds something else gives `fallback`, and the value lives as long as the page.
 */
export function kept<T>(name: string, fallback: T, is: (value: unknown) => value is T): Signal<T> {
  const key = `lakemill.${name}`;
  const value = signal(read(key, fallback, is));
  value.subscribe((now) => write(key, now, fallback));
  return value;
}

/** As `kept`, and what another tab writes is taken over, so that tabs add to one list and don't undo one another. */
export function keptByAll<T>(name: string, fallback: T, is: (value: unknown) => value is T): Signal<T> {
  const value = kept(name, fallback, is);
  const key = `lakemill.${name}`;
  window.addEventListener("storage", (event) => {
    if (event.key === key || event.key === null) value.value = read(key, fallback, is);
  });
  return value;
}

function read<T>(key: string, fallback: T, is: (value: unknown) => value is T): T {
  try {
    const text = localStorage.getItem(key);
    if (text === null) return fallback;
    const value: unknown = JSON.parse(text);
    return is(value) ? value : fallback;
  } catch {
    return fallback;
  }
}

function write<T>(key: string, value: T, fallback: T): void {
  try {
    const text = JSON.stringify(value);
    if (value === fallback) localStorage.removeItem(key);
    else if (text.length <= TEXT_MAX) localStorage.setItem(key, text);
  } catch {
    // The value lives as long as the page.
  }
}

export const isString = (value: unknown): value is string => typeof value === "string";
export const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
export const isStrings = (value: unknown): value is string[] => Array.isArray(value) && value.every(isString);
