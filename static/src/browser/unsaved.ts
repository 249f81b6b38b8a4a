import { computed, signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";

/** The navigation that ends the work: leaving the view, or only closing the page, as for uploads. */
type Bound = "view" | "page";

const unsaved = signal<ReadonlyMap<string, Bound>>(new Map());

window.addEventListener("beforeunload", (event) => {
  if (unsaved.value.size > 0) event.preventDefault();
});

/** Names of unsaved work ("the config of orders"); links ask before they leave it. */
export const unsavedNames = computed(() =>
  [...unsaved.value].flatMap(([name, bound]) => (bound === "view" ? [name] : [])),
);

const hasUnsaved = (): boolean => unsavedNames.value.length > 0;

/** The navigation that waits for confirmation. */
export const leaving = signal<(() => void) | undefined>(undefined);

/** While `dirty`, asks before the view (or, with `page`, only the page) is left. */
export function useUnsaved(name: string, dirty: boolean, bound: Bound = "view"): void {
  // Before painting, so that a view can save and navigate without a prompt.
  useLayoutEffect(() => {
    if (!dirty) return undefined;
    unsaved.value = new Map([...unsaved.value, [name, bound]]);
    return () => {
      unsaved.value = new Map([...unsaved.value].filter(([other]) => other !== name));
    };
  }, [name, dirty, bound]);
}

/** Whether navigation leaves the view; changes of parameters don't. */
const leaves = (to: string): boolean => new URL(to, location.href).pathname !== location.pathname;

/** Wraps the router's navigation with the prompt for unsaved work. */
export function guarded<O>(navigate: (to: string, options?: O) => void, to: string, options?: O): void {
  const go = () => navigate(to, options);
  if (!hasUnsaved() || !leaves(to)) return go();
  // Deferred: a save that has just ended takes effect with the next render.
  setTimeout(() => {
    if (hasUnsaved()) leaving.value = go;
    else go();
  });
}

interface Traversal extends Event {
  navigationType: string;
  destination: { url: string; key: string };
}

interface Navigation extends EventTarget {
  traverseTo: (key: string) => { finished: Promise<unknown> };
}

/** Intercepts Back and Forward where the browser allows it; elsewhere drafts protect the text. */
function guardBack(navigation: Navigation): void {
  let allowed = false;
  navigation.addEventListener("navigate", (event) => {
    const { navigationType, destination, cancelable } = event as Traversal;
    if (allowed || navigationType !== "traverse" || !cancelable) return;
    if (!hasUnsaved() || !leaves(destination.url)) return;
    event.preventDefault();
    leaving.value = () => {
      allowed = true;
      const done = () => (allowed = false);
      navigation.traverseTo(destination.key).finished.then(done, done);
    };
  });
}

if ("navigation" in window) guardBack((window as unknown as { navigation: Navigation }).navigation);
