import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

const unsaved = signal<ReadonlySet<string>>(new Set());

window.addEventListener("beforeunload", (event) => {
  if (unsaved.value.size > 0) event.preventDefault();
});

/** What is typed and not saved, told by its name ("the config of orders"); links ask before they leave it. */
export const unsavedThings = unsaved;

/** While `dirty`, leaving the page asks first. */
export function useUnsaved(name: string, dirty: boolean): void {
  useEffect(() => {
    if (!dirty) return undefined;
    unsaved.value = new Set([...unsaved.value, name]);
    return () => {
      unsaved.value = new Set([...unsaved.value].filter((other) => other !== name));
    };
  }, [name, dirty]);
}
