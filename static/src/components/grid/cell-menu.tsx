import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { MenuList, type MenuItem } from "../menu";

const GAP = 4;

/** Context menu at a position of the page. */
export function CellMenu({
  label,
  at,
  items,
  onClose,
}: {
  label: string;
  at: { x: number; y: number };
  items: MenuItem[];
  onClose: () => void;
}) {
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const node = list.current;
    if (!node) return;
    const { width, height } = node.getBoundingClientRect();
    node.style.left = `${Math.max(GAP, Math.min(at.x, window.innerWidth - width - GAP))}px`;
    node.style.top = `${Math.max(GAP, Math.min(at.y, window.innerHeight - height - GAP))}px`;
    node.querySelector<HTMLElement>("[role=menuitem]")?.focus();
  }, [at]);
  useEffect(() => {
    const leave = (event: Event) => {
      if (event.target instanceof Node && !list.current?.contains(event.target)) onClose();
    };
    document.addEventListener("pointerdown", leave);
    document.addEventListener("wheel", leave, { passive: true });
    window.addEventListener("resize", onClose);
    return () => {
      document.removeEventListener("pointerdown", leave);
      document.removeEventListener("wheel", leave);
      window.removeEventListener("resize", onClose);
    };
  }, [onClose]);
  return <MenuList listRef={list} label={label} items={items} onClose={onClose} />;
}
