import { computed, signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

/**
 * The navigation that ends the work: leaving the view, or only closing the page, as for uploads. `kept`: leaving the view
 * leaves it unsaved, and the browser keeps it.
 */
type Bound = "view" | "page" | "kept";

const unsaved = signal<ReadonlyMap<string, Bound>>(new Map());

window.addEventListener("beforeunload", (event) => {
  if ([...unsaved.value.values()].some((bound) => bound !== "kept")) event.preventDefault();
});

/** Names of unsaved work ("the config of orders"); links ask before they leave it. */
export const unsavedNames = computed(() =>
  [...unsaved.value].flatMap(([name, bound]) => (bound === "page" ? [] : [name])),
);

/** Whether all of it is kept by the browser. */
export const areKept = (): boolean => [...unsaved.value.values()].every((bound) => bound !== "view");

const hasUnsaved = (): boolean => unsavedNames.value.length > 0;

interface Leaving {
  go: () => void;
  /** What a dialog that closes would lose; else all unsaved work. */
  only?: string;
}

/** The navigation or the closing of a dialog that waits for confirmation. */
export const leaving = signal<Leaving | undefined>(undefined);

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
    if (hasUnsaved()) leaving.value = { go };
    else go();
  });
}

/** What closes the open dialogs, the last on top. */
const open: (() => void)[] = [];

/** While mounted, Back calls `close` instead of leaving the view, where the browser allows it. */
export function useBack(close: (() => void) | undefined): void {
  const latest = useRef(close);
  latest.current = close;
  const isOn = close !== undefined;
  useLayoutEffect(() => {
    if (!isOn) return undefined;
    const own = () => latest.current?.();
    open.push(own);
    return () => void open.splice(open.indexOf(own), 1);
  }, [isOn]);
}

interface Traversal extends Event {
  navigationType: string;
  destination: { url: string; key: string };
}

interface Navigation extends EventTarget {
  traverseTo: (key: string) => { finished: Promise<unknown> };
}

/** Intercepts Back and Forward, which close a dialog first, where the browser allows it; elsewhere drafts protect the text. */
function guardBack(navigation: Navigation): void {
  let allowed = false;
  navigation.addEventListener("navigate", (event) => {
    const { navigationType, destination, cancelable } = event as Traversal;
    if (allowed || navigationType !== "traverse" || !cancelable) return;
    const close = open.at(-1);
    if (close) {
      event.preventDefault();
      return close();
    }
    if (!hasUnsaved() || !leaves(destination.url)) return;
    event.preventDefault();
    const go = () => {
      allowed = true;
      const done = () => (allowed = false);
      navigation.traverseTo(destination.key).finished.then(done, done);
    };
    leaving.value = { go };
  });
}

if ("navigation" in window) guardBack((window as unknown as { navigation: Navigation }).navigation);
