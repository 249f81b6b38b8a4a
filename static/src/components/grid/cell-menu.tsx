import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { MenuItem } from "../menu";

const GAP = 4;

/** A menu at a point of the page: arrows move, Enter chooses, Esc closes. */
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
  const move = (event: KeyboardEvent) => {
    const found = [...(list.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const now = found.indexOf(document.activeElement as HTMLElement);
    const go = (to: number) => found[(to + found.length) % found.length]?.focus();
    event.stopPropagation();
    if (event.key === "ArrowDown") go(now + 1);
    else if (event.key === "ArrowUp") go(now - 1);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(found.length - 1);
    else if (event.key === "Escape" || event.key === "Tab") onClose();
    else return;
    event.preventDefault();
  };
  return (
    <div ref={list} class="menu-list" role="menu" tabIndex={-1} aria-label={label} onKeyDown={move}>
      {items.map((item) => (
        <button
          key={item.label}
          type="button"
          role="menuitem"
          tabIndex={-1}
          onClick={() => {
            onClose();
            item.onSelect();
          }}
        >
          {item.icon}
          <span>
            {item.label}
            {item.hint && <small>{item.hint}</small>}
          </span>
        </button>
      ))}
    </div>
  );
}
