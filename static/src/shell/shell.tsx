import { useQuery } from "@tanstack/preact-query";
import { Command, Menu as MenuIcon } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { settingsQuery } from "../api/queries";
import { IconButton } from "../components/button";
import { workspace } from "../components/page";
import { toast } from "../components/toasts";
import { useFocusOnNavigation } from "./focus";
import type { Action } from "./commands";
import { UploadDock } from "../uploads/dock";
import { Uploader } from "./uploader";
import { askForFiles } from "./upload-request";
import { Help } from "./help";
import { UnsavedDialog } from "./unsaved-dialog";
import { logout } from "./login";
import { Palette } from "./palette";
import { CleanRun, useRun } from "./pipeline";
import { routes } from "../browser/routes";
import { useShortcuts } from "../browser/shortcuts";
import { nextTheme, Sidebar } from "./sidebar";
import "./shell.css";

/** Slug of the pipeline at a path. */
function pipelineAt(path: string): string | undefined {
  const [first, slug] = path.split("/").filter(Boolean);
  if (first !== "p" || slug === undefined) return undefined;
  try {
    return decodeURIComponent(slug);
  } catch {
    return undefined;
  }
}

/** Sidebar as a sheet on narrow screens: the view is inert, Esc closes. */
function useSheet(path: string) {
  const [open, setOpen] = useState(false);
  const sidebar = useRef<HTMLElement>(null);
  useEffect(() => setOpen(false), [path]);
  // In the layout effect, so that `useArrival` has the last word on the focus.
  useLayoutEffect(() => {
    if (!open) return undefined;
    const before = document.activeElement;
    sidebar.current?.querySelector("a")?.focus();
    const key = (event: KeyboardEvent) => {
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) setOpen(false);
    };
    // Wide windows have no sheet.
    const grown = window.matchMedia("(min-width: 761px)");
    const close = () => setOpen(false);
    document.addEventListener("keydown", key);
    grown.addEventListener("change", close);
    return () => {
      document.removeEventListener("keydown", key);
      grown.removeEventListener("change", close);
      if (before instanceof HTMLElement) before.focus();
    };
  }, [open]);
  return { open, setOpen, sidebar };
}

/** Actions of the palette. */
function useActions(here: string | undefined, help: () => void) {
  const [cleaning, setCleaning] = useState<string>();
  // Runs the pipeline of the dialog, even if navigation changed meanwhile.
  const { run } = useRun(cleaning ?? here ?? "");
  const act = (action: Action) => {
    if (action === "help") help();
    else if (action === "theme") nextTheme();
    else if (action === "logout") logout().catch((error: unknown) => toast.failed("Couldn't log out", error));
    else if (action === "upload") askForFiles(here);
    else if (here && action === "run") void run(false);
    else if (action === "clean") setCleaning(here);
  };
  const asking = cleaning !== undefined && (
    <CleanRun
      slug={cleaning}
      onClose={() => setCleaning(undefined)}
      onConfirm={() => {
        setCleaning(undefined);
        void run(true);
      }}
    />
  );
  return { act, asking };
}

/** Frame of every view: sidebar, palette, help. */
export function Shell({ children }: { children: ComponentChildren }) {
  const [path, go] = useLocation();
  const sheet = useSheet(path);
  const [over, setOver] = useState<"palette" | "help">();
  const { data: settings } = useQuery(settingsQuery());
  const here = pipelineAt(path);
  const help = () => setOver("help");
  const palette = () => setOver("palette");
  const { act, asking } = useActions(here, help);

  useFocusOnNavigation(path);
  useEffect(() => {
    workspace.value = settings?.workspace_name || "Lakemill";
  }, [settings]);
  useShortcuts([
    { keys: "mod+k", does: "Open the command palette", run: palette, scope: "everywhere" },
    { keys: "?", does: "Show help for this view", run: help, scope: "everywhere" },
    { keys: "g p", does: "Go to pipelines", run: () => go(routes.home()), scope: "everywhere" },
    { keys: "g l", does: "Go to the lake", run: () => go(routes.lake()), scope: "everywhere" },
    { keys: "g j", does: "Go to the jobs of all pipelines", run: () => go(routes.allJobs()), scope: "everywhere" },
    { keys: "g s", does: "Go to settings", run: () => go(routes.settings()), scope: "everywhere" },
  ]);

  return (
    <div class="shell">
      <a
        class="skip"
        href="#view"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("view")?.focus();
        }}
      >
        Skip to content
      </a>
      <div class="topbar" inert={sheet.open}>
        <IconButton label="Menu" icon={<MenuIcon />} aria-expanded={sheet.open} onClick={() => sheet.setOpen(true)} />
        <Link href={routes.home()} class="cut">
          {workspace.value}
        </Link>
        <span class="grow" />
        <IconButton label="Commands" icon={<Command />} onClick={palette} />
      </div>
      {sheet.open && (
        <button type="button" class="sheet-scrim" aria-label="Close menu" onClick={() => sheet.setOpen(false)} />
      )}
      <nav ref={sheet.sidebar} class={sheet.open ? "sidebar open" : "sidebar"} aria-label="Workspace">
        <Sidebar onPalette={palette} onHelp={help} />
      </nav>
      <main id="view" tabIndex={-1} inert={sheet.open}>
        {children}
      </main>
      {over === "palette" && <Palette here={here} onClose={() => setOver(undefined)} onAct={act} />}
      {over === "help" && <Help path={path} onClose={() => setOver(undefined)} />}
      {asking}
      <UnsavedDialog />
      <UploadDock />
      <Uploader here={here} />
    </div>
  );
}
