import { useEffect, useRef } from "preact/hooks";

/** Whether somebody's focus is already where they went: in the view, but not in what led there. */
function settled(main: HTMLElement): boolean {
  const focused = document.activeElement;
  return focused !== null && focused !== main && main.contains(focused) && !focused.closest("nav, dialog");
}

function arrive(): void {
  const main = document.getElementById("view");
  if (!main || settled(main) || document.querySelector("dialog[open]")) return;
  const heading = main.querySelector<HTMLElement>(".pipeline-view h1") ?? main.querySelector<HTMLElement>("h1") ?? main;
  if (heading !== main) heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

/** After going elsewhere, keyboard and screen reader go on at the heading of the view. */
export function useArrival(path: string): void {
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return undefined;
    before.current = path;
    const timer = setTimeout(arrive);
    return () => clearTimeout(timer);
  }, [path]);
}
