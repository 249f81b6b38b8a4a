import { useQuery } from "@tanstack/preact-query";
import {
  CircleHelp,
  Command,
  Database,
  Menu as MenuIcon,
  Monitor,
  Moon,
  Settings as SettingsIcon,
  Star,
  Sun,
} from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { pipelinesQuery, settingsQuery } from "../api/queries";
import { IconButton } from "../components/button";
import { workspace } from "../components/page";
import { UploadDock } from "../uploads/dock";
import { Help } from "./help";
import { Palette } from "./palette";
import { places } from "./places";
import { useShortcuts } from "./shortcuts";
import { choose, theme, type Theme } from "./theme";
import "./shell.css";

const NEXT_THEME: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const THEME_ICONS: Record<Theme, typeof Sun> = { system: Monitor, light: Sun, dark: Moon };

function ThemeButton() {
  const Icon = THEME_ICONS[theme.value];
  return <IconButton label={`Theme: ${theme.value}`} icon={<Icon />} onClick={() => choose(NEXT_THEME[theme.value])} />;
}

function Pipelines() {
  const { data } = useQuery(pipelinesQuery());
  const { data: settings } = useQuery(settingsQuery());
  const [path] = useLocation();
  const starred = settings?.starred ?? [];
  const listed = [...(data?.pipelines ?? [])].sort(
    (a, b) => Number(starred.includes(b.slug)) - Number(starred.includes(a.slug)),
  );
  return (
    <ul class="sidebar-pipelines">
      {listed.map(({ slug, title, last_job }) => {
        const here = path === places.pipeline(slug) || path.startsWith(`${places.pipeline(slug)}/`);
        return (
          <li key={slug}>
            <Link href={places.pipeline(slug)} aria-current={here ? "page" : undefined} title={title ?? slug}>
              {starred.includes(slug) ? (
                <Star class="star" aria-label="Starred" />
              ) : (
                <span class="dot" data-status={last_job?.status} />
              )}
              <span class="cut">{slug}</span>
            </Link>
          </li>
        );
      })}
    </ul>
  );
}

/** The frame of every view: sidebar, palette, help. Below 760 px the sidebar is a sheet. */
export function Shell({ children }: { children: ComponentChildren }) {
  const [path, go] = useLocation();
  const [sheet, setSheet] = useState(false);
  const [over, setOver] = useState<"palette" | "help">();
  const { data: settings } = useQuery(settingsQuery());

  useEffect(() => setSheet(false), [path]);
  useEffect(() => {
    workspace.value = settings?.workspace_name ?? "Lakemill";
  }, [settings]);
  useShortcuts([
    { keys: "mod+k", does: "Open the command palette", run: () => setOver("palette") },
    { keys: "?", does: "Show the help for this view", run: () => setOver("help") },
    { keys: "g p", does: "Go to pipelines", run: () => go(places.home()) },
    { keys: "g l", does: "Go to the lake", run: () => go(places.lake()) },
    { keys: "g s", does: "Go to settings", run: () => go(places.settings()) },
  ]);

  const at = (place: string) => (path === place ? "page" : undefined);
  return (
    <div class="shell">
      <a class="skip" href="#view">
        Skip to the view
      </a>
      <div class="topbar">
        <IconButton label="Menu" icon={<MenuIcon />} aria-expanded={sheet} onClick={() => setSheet(!sheet)} />
        <Link href={places.home()} class="cut">
          {workspace.value}
        </Link>
        <span class="grow" />
        <IconButton label="Commands" icon={<Command />} onClick={() => setOver("palette")} />
      </div>
      {sheet && (
        <button type="button" class="sheet-scrim" aria-label="Close the menu" onClick={() => setSheet(false)} />
      )}
      <nav class={sheet ? "sidebar open" : "sidebar"} aria-label="Workspace">
        <Link href={places.home()} class="sidebar-home" aria-current={at("/")}>
          <img src="/favicon.svg" alt="" width="20" height="20" />
          <strong class="cut">{workspace.value}</strong>
        </Link>
        <Pipelines />
        <div class="sidebar-foot">
          <Link href={places.lake()} aria-current={at("/lake")}>
            <Database />
            Lake
          </Link>
          <Link href={places.settings()} aria-current={at("/settings")}>
            <SettingsIcon />
            Settings
          </Link>
          <div class="row">
            <IconButton label="Commands" icon={<Command />} onClick={() => setOver("palette")} />
            <IconButton label="Help" icon={<CircleHelp />} onClick={() => setOver("help")} />
            <ThemeButton />
          </div>
        </div>
      </nav>
      <main id="view" tabIndex={-1}>
        {children}
      </main>
      <UploadDock />
      {over === "palette" && <Palette onClose={() => setOver(undefined)} onHelp={() => setOver("help")} />}
      {over === "help" && <Help onClose={() => setOver(undefined)} />}
    </div>
  );
}
