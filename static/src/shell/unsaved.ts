import { signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";

const unsaved = signal<ReadonlySet<string>>(new Set());

window.addEventListener("beforeunload", (event) => {
  if (unsaved.value.size > 0) event.preventDefault();
});

/** What is typed and not saved, told by its name ("the config of orders"); links ask before they leave it. */
export const unsavedThings = unsaved;

/** The way on that waits for the person's word. */
export const leaving = signal<(() => void) | undefined>(undefined);

/** While `dirty`, leaving the page asks first. */
export function useUnsaved(name: string, dirty: boolean): void {
  // Before anything is painted: a view that saves and then goes elsewhere isn't asked.
  useLayoutEffect(() => {
    if (!dirty) return undefined;
    unsaved.value = new Set([...unsaved.value, name]);
    return () => {
      unsaved.value = new Set([...unsaved.value].filter((other) => other !== name));
    };
  }, [name, dirty]);
}

/** Whether going there takes the view away; other parameters of the same place don't. */
const leaves = (to: string): boolean => new URL(to, location.href).pathname !== location.pathname;

/** Around every navigation of the router: asks where something would be left unsaved. */
export function guarded<O>(navigate: (to: string, options?: O) => void, to: string, options?: O): void {
  const go = () => navigate(to, options);
  if (unsaved.value.size === 0 || !leaves(to)) return go();
  // What was saved just now is noted once its view has drawn that.
  setTimeout(() => {
    if (unsaved.value.size === 0) go();
    else leaving.value = go;
  });
}

interface Traversal extends Event {
  navigationType: string;
  destination: { url: string; key: string };
}

interface Navigation extends EventTarget {
  traverseTo: (key: string) => { finished: Promise<unknown> };
}

/** The browser's Back and Forward, where it lets pages hold them; elsewhere drafts are what is left. */
function guardBack(navigation: Navigation): void {
  let allowed = false;
  navigation.addEventListener("navigate", (event) => {
    const { navigationType, destination, cancelable } = event as Traversal;
    if (allowed || navigationType !== "traverse" || !cancelable) return;
    if (unsaved.value.size === 0 || !leaves(destination.url)) return;
    event.preventDefault();
    leaving.value = () => {
      allowed = true;
      const done = () => (allowed = false);
      navigation.traverseTo(destination.key).finished.then(done, done);
    };
  });
}

if ("navigation" in window) guardBack((window as unknown as { navigation: Navigation }).navigation);
