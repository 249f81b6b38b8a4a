import { X } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { leaving, useBack, useUnsaved } from "../browser/unsaved";
import { Button, IconButton } from "./button";
import "./dialog.css";

interface Props {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** Footer buttons, the primary one last. */
  actions?: ComponentChildren;
  /** `drawer`: full height at the right edge. */
  kind?: "dialog" | "wide" | "drawer";
  /** False: only the actions close the dialog. */
  closable?: boolean;
  /** Names changes that would be lost; everything but the actions asks before it closes the dialog or leaves the view. */
  unsaved?: string | undefined;
  /** Whether the URL opens the dialog: Back closes it without help. */
  inUrl?: boolean;
}

/** A modal dialog: traps focus, closes with Esc and Back, and restores focus. */
export function Dialog(props: Props) {
  const { title, onClose: done, children, actions, kind = "dialog", closable = true, unsaved, inUrl = false } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const name = useId();
  const left = useRef(false);
  useUnsaved(unsaved ?? "", unsaved !== undefined);
  const onClose = () => {
    if (unsaved === undefined) done();
    else leaving.value = { go: done, only: unsaved };
  };
  useBack(closable && !inUrl ? onClose : undefined);
  // Before the next event, so that the dialog receives keys pressed at once.
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
      // Browsers close a dialog on the second Esc even if the first was prevented.
      onClose={(event) => {
        if (left.current || event.target !== dialog.current) return;
        if (closable) onClose();
        if (!closable || unsaved !== undefined) dialog.current?.showModal();
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
  /** A verb for the button. */
  action: string;
  danger?: boolean;
  busy?: boolean;
  /** Set while the action is in progress and can be stopped. */
  onStop?: (() => void) | undefined;
  /** Enables the button. */
  ready?: boolean;
  onConfirm: () => void;
  onClose: () => void;
}

/** Confirmation dialog; its text lists what changes or is lost. */
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
          <Button variant={danger ? "danger" : "primary"} busy={busy} disabled={!ready} onClick={onConfirm}>
            {action}
          </Button>
        </>
      }
    >
      {children}
    </Dialog>
  );
}
