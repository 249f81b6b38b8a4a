import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Button } from "./button";
import "./menu.css";

export interface MenuItem {
  label: string;
  icon?: ComponentChildren;
  /** Description below the label. */
  hint?: string;
  danger?: boolean;
  disabled?: boolean;
  onSelect: () => void;
}

interface Props {
  /** Accessible name of the button. */
  label: string;
  button: ComponentChildren;
  look?: "plain" | "primary" | "quiet";
  items: MenuItem[];
  class?: string;
}

/** Items of an open menu: arrows move, Enter selects, Esc closes. */
export function MenuList({
  listRef,
  id,
  label,
  items,
  onClose,
  onLeave = onClose,
}: {
  listRef: RefObject<HTMLDivElement>;
  id?: string;
  label: string;
  items: MenuItem[];
  onClose: () => void;
  /** Tab was pressed; focus continues from the button. */
  onLeave?: () => void;
}) {
  const move = (event: KeyboardEvent) => {
    const found = [...(listRef.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const at = found.indexOf(document.activeElement as HTMLElement);
    const go = (to: number) => found[(to + found.length) % found.length]?.focus();
    event.stopPropagation();
    if (event.key === "ArrowDown") go(at + 1);
    else if (event.key === "ArrowUp") go(at - 1);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(found.length - 1);
    else if (event.key === "Escape") onClose();
    else if (event.key === "Tab") return onLeave();
    else return undefined;
    event.preventDefault();
  };
  return (
    <div ref={listRef} id={id} class="menu-list" role="menu" tabIndex={-1} aria-label={label} onKeyDown={move}>
      {items.map((item) => (
        <button
          key={item.label}
          type="button"
          role="menuitem"
          tabIndex={-1}
          class={item.danger ? "danger" : ""}
          aria-disabled={item.disabled ?? false}
          onClick={() => {
            if (item.disabled) return;
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

/** Menu button: arrows move, Enter selects, Esc closes. */
export function Menu({ label, button, look = "quiet", items, class: extra }: Props) {
  const [open, setOpen] = useState(false);
  const anchor = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();

  useEffect(() => {
    const node = list.current;
    if (!open || !node || !anchor.current) return undefined;
    place(node, anchor.current);
    node.querySelector<HTMLElement>("[role=menuitem]:not([aria-disabled=true])")?.focus();
    const leave = (event: Event) => {
      if (event.target instanceof Node && !node.contains(event.target) && !anchor.current?.contains(event.target))
        setOpen(false);
    };
    const close = () => setOpen(false);
    document.addEventListener("pointerdown", leave);
    window.addEventListener("resize", close);
    return () => {
      document.removeEventListener("pointerdown", leave);
      window.removeEventListener("resize", close);
    };
  }, [open]);

  const close = () => {
    setOpen(false);
    anchor.current?.focus();
  };
  return (
    <span class="menu">
      <Button
        buttonRef={anchor}
        variant={look}
        class={extra}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen(!open)}
      >
        {button}
      </Button>
      {open && (
        <MenuList listRef={list} id={id} label={label} items={items} onClose={close} onLeave={() => setOpen(false)} />
      )}
    </span>
  );
}

/** Places the menu below the button, or above if there is more room. */
function place(list: HTMLElement, anchor: HTMLElement): void {
  const gap = 4;
  const at = anchor.getBoundingClientRect();
  const size = list.getBoundingClientRect();
  const below = window.innerHeight - at.bottom;
  const top = below < size.height + gap && at.top > below ? at.top - size.height - gap : at.bottom + gap;
  const left = Math.min(at.left, window.innerWidth - size.width - gap);
  list.style.top = `${Math.max(gap, top)}px`;
  list.style.left = `${Math.max(gap, left)}px`;
}
