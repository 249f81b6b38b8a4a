import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Rows beyond what is seen, on each side. */
const BESIDE = 10;

interface Seen {
  first: number;
  end: number;
  /** Of the box; 0 while it isn't shown yet. */
  height: number;
}

/** Which of many rows of one height are drawn in a box that scrolls. */
export function useWindow(total: number, rowPx: number) {
  const box = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState<Seen>({ first: 0, end: 50, height: 0 });
  const look = () => {
    const node = box.current;
    if (!node) return;
    const first = Math.max(0, Math.floor(node.scrollTop / rowPx) - BESIDE);
    const end = Math.ceil((node.scrollTop + node.clientHeight) / rowPx) + BESIDE;
    const height = node.clientHeight;
    setSeen((now) => (now.first === first && now.end === end && now.height === height ? now : { first, end, height }));
  };
  useLayoutEffect(() => {
    const node = box.current;
    if (!node) return undefined;
    look();
    const observer = new ResizeObserver(look);
    observer.observe(node);
    return () => observer.disconnect();
    // Once: what it reads is asked for anew each time.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  const reveal = (row: number, middle = false) => {
    const node = box.current;
    if (!node) return;
    const [top, bottom] = [row * rowPx, (row + 1) * rowPx];
    if (middle) node.scrollTop = top - node.clientHeight / 2;
    else if (top < node.scrollTop) node.scrollTop = top;
    else if (bottom > node.scrollTop + node.clientHeight) node.scrollTop = bottom - node.clientHeight;
    look();
  };
  const end = Math.min(total, seen.end);
  return { box, onScroll: look, reveal, height: seen.height, first: Math.min(seen.first, Math.max(0, end - 1)), end };
}
