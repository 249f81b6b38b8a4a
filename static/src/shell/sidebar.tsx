import { useQuery } from "@tanstack/preact-query";
import {
  CircleHelp,
  Command,
  Database,
  ListChecks,
  Monitor,
  Moon,
  Settings as SettingsIcon,
  Star,
  Sun,
  type LucideIcon,
} from "lucide-preact";
import { useMemo, useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { jobsQuery, pipelinesQuery, settingsQuery } from "../api/queries";
import { titleOfPipeline } from "../api/titles";
import type { PipelineDetail } from "../api/types";
import { IconButton } from "../components/button";
import { TextField } from "../components/field";
import { workspace } from "../components/page";
import { routes } from "../browser/routes";
import { choose, theme, type Theme } from "../browser/theme";

/** With more pipelines, a search field is shown. */
const UNSEARCHED_MAX = 12;
const NEXT_THEME: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const THEME_ICONS: Record<Theme, LucideIcon> = { system: Monitor, light: Sun, dark: Moon };

export const nextTheme = (): void => choose(NEXT_THEME[theme.value]);

function ThemeButton() {
  const Icon = THEME_ICONS[theme.value];
  return <IconButton label={`Theme: ${theme.value}`} icon={<Icon />} onClick={nextTheme} />;
}

/** Pipelines that match the text, starred ones first in their order. */
function filteredAndSorted(pipelines: PipelineDetail[], starred: string[], text: string): PipelineDetail[] {
  const wanted = text.trim().toLowerCase();
  const place = new Map(starred.map((slug, at) => [slug, at]));
  return pipelines
    .filter(({ slug, title }) => slug.includes(wanted) || (title ?? "").toLowerCase().includes(wanted))
    .sort((a, b) => (place.get(a.slug) ?? starred.length) - (place.get(b.slug) ?? starred.length));
}

interface ItemProps {
  pipeline: PipelineDetail;
  here: boolean;
  starred: boolean;
  /** Whether another pipeline has the same title. */
  isTwin: boolean;
}

function Item({ pipeline, here, starred, isTwin }: ItemProps) {
  const { slug, title, last_job } = pipeline;
  // The open pipeline's head and views show its jobs, which are newer than the list.
  const { data } = useQuery({ ...jobsQuery(slug), enabled: here });
  const newest = here ? data?.jobs[0] : undefined;
  const status = newest?.status ?? last_job?.status;
  const isCancelled = (newest ? newest.error?.code : last_job?.error) === "cancelled";
  return (
    <li>
      <Link
        href={routes.pipeline(slug)}
        aria-current={here ? "page" : undefined}
        title={title ? `${title} (${slug})` : slug}
      >
        {starred ? (
          <Star class="star" aria-label="Starred" />
        ) : (
          <span class="dot" data-status={isCancelled ? undefined : status} />
        )}
        <span class="cut">
          {title || slug}
          {isTwin && <code class="dim"> {slug}</code>}
        </span>
      </Link>
    </li>
  );
}

function Pipelines() {
  const { data } = useQuery(pipelinesQuery());
  const { data: settings } = useQuery(settingsQuery());
  const [path] = useLocation();
  const [text, setText] = useState("");
  const all = data?.pipelines;
  const listed = useMemo(() => filteredAndSorted(all ?? [], settings?.starred ?? [], text), [all, settings, text]);
  const starred = new Set(settings?.starred);
  const titles = new Map<string, number>();
  for (const one of all ?? []) titles.set(titleOfPipeline(one), (titles.get(titleOfPipeline(one)) ?? 0) + 1);
  return (
    <>
      {(all?.length ?? 0) > UNSEARCHED_MAX && (
        <TextField
          label="Search pipelines"
          bare
          type="search"
          placeholder="Search pipelines"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Escape" && setText("")}
        />
      )}
      <ul class="sidebar-pipelines">
        {listed.map((pipeline) => {
          const place = routes.pipeline(pipeline.slug);
          const here = path === place || path.startsWith(`${place}/`);
          const isTwin = (titles.get(titleOfPipeline(pipeline)) ?? 0) > 1;
          return <Item key={pipeline.slug} {...{ pipeline, here, isTwin }} starred={starred.has(pipeline.slug)} />;
        })}
        {text && listed.length === 0 && <li class="sidebar-none dim">No pipelines found.</li>}
        {data?.truncated && <li class="sidebar-none dim">More pipelines match. Refine the search.</li>}
      </ul>
    </>
  );
}

interface Props {
  onPalette: () => void;
  onHelp: () => void;
}

/** Navigation. */
export function Sidebar({ onPalette, onHelp }: Props) {
  const [path] = useLocation();
  const at = (place: string) => (path === place ? "page" : undefined);
  return (
    <>
      <Link href={routes.home()} class="sidebar-home" aria-current={at("/")}>
        <img src="/favicon.svg" alt="" width="20" height="20" />
        <strong class="cut">{workspace.value}</strong>
      </Link>
      <Pipelines />
      <div class="sidebar-foot">
        <Link href={routes.lake()} aria-current={at("/lake")}>
          <Database />
          Lake
        </Link>
        <Link href={routes.allJobs()} aria-current={at("/jobs")}>
          <ListChecks />
          All jobs
        </Link>
        <Link href={routes.settings()} aria-current={at("/settings")}>
          <SettingsIcon />
          Settings
        </Link>
        <div class="row">
          <IconButton label="Commands" icon={<Command />} onClick={onPalette} />
          <IconButton label="Help" icon={<CircleHelp />} onClick={onHelp} />
          <ThemeButton />
        </div>
      </div>
    </>
  );
}
