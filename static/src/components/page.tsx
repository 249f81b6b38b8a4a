import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import "./page.css";

/** Name of the workspace, part of every page title. */
export const workspace = signal("Lakemill");

/** Sets the page title. */
export function useTitle(title: string): void {
  const whole = title ? `${title} · ${workspace.value}` : workspace.value;
  useEffect(() => {
    document.title = whole;
  }, [whole]);
}

/** Frame of a view: heading, actions, own scrolling. `full`: the view manages its layout. */
export function Page({
  title,
  heading,
  actions,
  full,
  children,
}: {
  title: string;
  heading?: ComponentChildren;
  actions?: ComponentChildren;
  full?: boolean;
  children: ComponentChildren;
}) {
  useTitle(title);
  return (
    <div class={full ? "page full" : "page"}>
      {(heading !== undefined || actions !== undefined) && (
        <header class="page-head">
          <h1 class="grow">{heading}</h1>
          {actions}
        </header>
      )}
      {children}
    </div>
  );
}

/** A titled section of a page. */
export function Section({
  title,
  actions,
  children,
}: {
  title: string;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class="section">
      <header class="row">
        <h2 class="grow">{title}</h2>
        {actions}
      </header>
      {children}
    </section>
  );
}
