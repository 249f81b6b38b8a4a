import { X } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { Button, IconButton } from "./button";
import "./dialog.css";

interface Props {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** Buttons at the foot, the main one last. */
  actions?: ComponentChildren;
  /** `drawer`: at the right edge, as high as the page. */
  kind?: "dialog" | "wide" | "drawer";
  /** False: there is no way out but the actions. */
  closable?: boolean;
}

/** A modal dialog: keeps the focus, closes with Esc, and gives the focus back. */
export function Dialog({ title, onClose, children, actions, kind = "dialog", closable = true }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const name = useId();
  const left = useRef(false);
  // Before the next event, so that keys that follow at once are the dialog's.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const node = dialog.current;
    if (node && !node.open) node.showModal();
    return () => {
      left.current = true;
      node?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={`dialog ${kind}`}
      aria-labelledby={name}
      onCancel={(event) => {
        event.preventDefault();
        if (closable && event.target === dialog.current) onClose();
      }}
      // Browsers close a dialog at the second Esc whatever was said to the first.
      onClose={(event) => {
        if (left.current || event.target !== dialog.current) return;
        if (closable) onClose();
        else dialog.current?.showModal();
      }}
      onMouseDown={(event) => {
        if (closable && event.target === dialog.current) onClose();
      }}
    >
      <div class="dialog-frame">
        <header>
          <h2 id={name} class="grow">
            {title}
          </h2>
          {closable && <IconButton label="Close" icon={<X />} onClick={onClose} />}
        </header>
        {/* A long text without anything to focus is scrolled by keys, too. */}
        <div class="dialog-body" tabIndex={kind === "drawer" ? 0 : undefined}>
          {children}
        </div>
        {actions && <footer>{actions}</footer>}
      </div>
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  children: ComponentChildren;
  /** A verb: what the button does. */
  action: string;
  danger?: boolean;
  busy?: boolean;
  /** While it goes on: there is no way out but to stop it. */
  onStop?: (() => void) | undefined;
  /** The button waits for this. */
  ready?: boolean;
  onConfirm: () => void;
  onClose: () => void;
}

/** Asks before something is done; the text names what changes or is lost. */
export function Confirm({
  title,
  children,
  action,
  danger,
  busy,
  ready = true,
  onConfirm,
  onClose,
  onStop,
}: ConfirmProps) {
  return (
    <Dialog
      title={title}
      onClose={onClose}
      closable={onStop === undefined}
      actions={
        <>
          {onStop ? <Button onClick={onStop}>Stop</Button> : <Button onClick={onClose}>Cancel</Button>}
          <Button look={danger ? "danger" : "primary"} busy={busy} disabled={!ready} onClick={onConfirm}>
            {action}
          </Button>
        </>
      }
    >
      {children}
    </Dialog>
  );
}
