import { useEffect, useRef } from "preact/hooks";

/** Whether the focus is already inside the view. */
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

/** Focuses the heading, now or as soon as it exists. Returns the cancel function. */
function focusHeading(): () => void {
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

/** Moves focus to the heading after navigation, for keyboard and screen readers. */
export function useFocusOnNavigation(path: string): void {
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return undefined;
    before.current = path;
    let end: () => void = () => undefined;
    // After the sheet or dialog that navigated has closed.
    const timer = setTimeout(() => {
      end = focusHeading();
    });
    return () => {
      clearTimeout(timer);
      end();
    };
  }, [path]);
}
