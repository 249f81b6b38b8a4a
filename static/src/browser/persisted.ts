import { signal, type Signal } from "@preact/signals";

/** Maximum length in characters; browser storage is small. */
const TEXT_MAX = 512 * 1024;

/**
 * A value that this browser stores under `name` (histories, widths, unsaved text). If storage is full, disabled or
 * invalid, it starts with `fallback` and lives as long as the page.
 */
export function persisted<T>(name: string, fallback: T, is: (value: unknown) => value is T): Signal<T> {
  const key = `lakemill.${name}`;
  const value = signal(read(key, fallback, is));
  value.subscribe((now) => write(key, now, fallback));
  return value;
}

/** Like `kept`, and follows changes by other tabs, so that tabs extend one shared list. */
export function persistedAcrossTabs<T>(name: string, fallback: T, is: (value: unknown) => value is T): Signal<T> {
  const value = persisted(name, fallback, is);
  const key = `lakemill.${name}`;
  window.addEventListener("storage", (event) => {
    if (event.key === key || event.key === null) value.value = read(key, fallback, is);
  });
  return value;
}

/** Whether this browser stores a value under the name. */
export function isPersisted(name: string): boolean {
  try {
    return localStorage.getItem(`lakemill.${name}`) !== null;
  } catch {
    return false;
  }
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
    // Of a value that is too long, no former state is kept for it.
    if (value === fallback || text.length > TEXT_MAX) localStorage.removeItem(key);
    else localStorage.setItem(key, text);
  } catch {
    // The value lives as long as the page.
  }
}

export const isString = (value: unknown): value is string => typeof value === "string";
export const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
export const isStrings = (value: unknown): value is string[] => Array.isArray(value) && value.every(isString);
