import { useEffect, useRef } from "preact/hooks";

/** Whether somebody's focus is already where they went: in the view, but not in what led there. */
function settled(main: HTMLElement): boolean {
  const focused = document.activeElement;
  return focused !== null && focused !== main && main.contains(focused) && !focused.closest("nav, dialog");
}

const headingIn = (main: HTMLElement): HTMLElement | null =>
  main.querySelector<HTMLElement>(".pipeline-view h1") ?? main.querySelector<HTMLElement>("h1");

function focusOn(heading: HTMLElement): void {
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

/** Focuses the heading; one of a view that is still on its way, as soon as it is there. Gives what ends the waiting. */
function arrive(): () => void {
  const main = document.getElementById("view");
  if (!main || settled(main) || document.querySelector("dialog[open]")) return () => undefined;
  const heading = headingIn(main);
  if (heading) {
    focusOn(heading);
    return () => undefined;
  }
  main.focus({ preventScroll: true });
  const watch = new MutationObserver(() => {
    const late = headingIn(main);
    if (!late) return;
    watch.disconnect();
    if (document.activeElement === main || document.activeElement === document.body) focusOn(late);
  });
  watch.observe(main, { childList: true, subtree: true });
  return () => watch.disconnect();
}

/** After going elsewhere, keyboard and screen reader go on at the heading of the view. */
export function useArrival(path: string): void {
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return undefined;
    before.current = path;
    let end: () => void = () => undefined;
    // Once a sheet or dialog that led here is gone.
    const timer = setTimeout(() => {
      end = arrive();
    });
    return () => {
      clearTimeout(timer);
      end();
    };
  }, [path]);
}
