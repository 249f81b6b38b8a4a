import { computed, signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";

/** What leaving would end: the view it is typed in, or only the page as a whole, as with uploads. */
type Bound = "view" | "page";

const unsaved = signal<ReadonlyMap<string, Bound>>(new Map());

window.addEventListener("beforeunload", (event) => {
  if (unsaved.value.size > 0) event.preventDefault();
});

/** What is typed and not saved, told by its name ("the config of orders"); links ask before they leave it. */
export const unsavedThings = computed(() =>
  [...unsaved.value].flatMap(([name, bound]) => (bound === "view" ? [name] : [])),
);

const asks = (): boolean => unsavedThings.value.length > 0;

/** The way on that waits for the person's word. */
export const leaving = signal<(() => void) | undefined>(undefined);

/** While `dirty`, leaving asks first: the view, or, with `page`, the page alone. */
export function useUnsaved(name: string, dirty: boolean, bound: Bound = "view"): void {
  // Before anything is painted: a view that saves and then goes elsewhere isn't asked.
  useLayoutEffect(() => {
    if (!dirty) return undefined;
    unsaved.value = new Map([...unsaved.value, [name, bound]]);
    return () => {
      unsaved.value = new Map([...unsaved.value].filter(([other]) => other !== name));
    };
  }, [name, dirty, bound]);
}

/** Whether going there takes the view away; other parameters of the same place don't. */
const leaves = (to: string): boolean => new URL(to, location.href).pathname !== location.pathname;

/** Around every navigation of the router: asks where something would be left unsaved. */
export function guarded<O>(navigate: (to: string, options?: O) => void, to: string, options?: O): void {
  const go = () => navigate(to, options);
  if (!asks() || !leaves(to)) return go();
  // What was saved just now is noted once its view has drawn that.
  setTimeout(() => {
    if (asks()) leaving.value = go;
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

/** The browser's Back and Forward, where it lets pages hold them; elsewhere drafts are what is left. */
function guardBack(navigation: Navigation): void {
  let allowed = false;
  navigation.addEventListener("navigate", (event) => {
    const { navigationType, destination, cancelable } = event as Traversal;
    if (allowed || navigationType !== "traverse" || !cancelable) return;
    if (!asks() || !leaves(destination.url)) return;
    event.preventDefault();
    leaving.value = () => {
      allowed = true;
      const done = () => (allowed = false);
      navigation.traverseTo(destination.key).finished.then(done, done);
    };
  });
}

if ("navigation" in window) guardBack((window as unknown as { navigation: Navigation }).navigation);
