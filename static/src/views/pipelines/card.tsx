import { Download, EllipsisVertical, FolderOpen, Pencil, Play, Star, Trash2 } from "lucide-preact";
import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import type { JobStatus } from "../../api/types";
import { Menu } from "../../components/menu";
import { Badge, JobBadge } from "../../components/status";
import { Countdown, Time } from "../../components/time";
import { bytes, compact, count, counted } from "../../format/number";
import { DeletePipeline, RenamePipeline } from "../../shell/manage";
import { PausedBadge } from "../../shell/pause";
import { StarButton, useRun } from "../../shell/pipeline";
import { PipelineBadge } from "../../shell/state-notice";
import { routes } from "../../browser/routes";
import { exportPipeline } from "../../browser/save";
import { Sparkline } from "../../runs/sparkline";
import { isRunning, marksOf, type PipelineCard } from "./cards";

function LastRun({ card }: { card: PipelineCard }) {
  const { last_job: job } = card;
  if (!job) return <span class="dim">no runs yet</span>;
  return (
    <>
      <JobBadge status={job.status as JobStatus} code={job.error} />
      <span class="secondary">{job.finished_at ? <Time at={job.finished_at} /> : <Time at={job.enqueued_at} />}</span>
    </>
  );
}

function Config({ card }: { card: PipelineCard }) {
  if (card.config === "missing") return <Badge tone="warn">no config</Badge>;
  if (card.config === "invalid") return <Badge tone="bad">{counted(card.problems, "config problem")}</Badge>;
  return null;
}

function Size({ card }: { card: PipelineCard }) {
  const title = [
    typeof card.rows === "number" && counted(card.rows, "row"),
    typeof card.bytes === "number" && `${bytes(card.bytes)} of Parquet`,
  ].filter(Boolean);
  return (
    <span class="secondary" title={title.join(", ")}>
      {counted(card.tables, "table")}
      {typeof card.rows === "number" && ` · ${card.rows < 100_000 ? count(card.rows) : compact(card.rows)} rows`}
    </span>
  );
}

function Next({ card }: { card: PipelineCard }) {
  if (card.next_due && !isRunning(card)) {
    return (
      <>
        Next run <Countdown to={card.next_due} />
      </>
    );
  }
  return <>{card.auto_run ? "Runs when files arrive" : "Runs manually"}</>;
}

/** Card of a pipeline. */
export const Card = memo(function Card({ card, starred }: { card: PipelineCard; starred: boolean }) {
  const { slug } = card;
  const [, go] = useLocation();
  const { run } = useRun(slug);
  const [dialog, setDialog] = useState<"rename" | "delete">();
  const close = () => setDialog(undefined);
  return (
    <li class="card pipelines-card" data-slug={slug}>
      <header class="row">
        <h2 class="grow cut">
          <Link href={routes.pipeline(slug)} class="pipelines-open" title={card.title ?? slug}>
            {card.title || slug}
          </Link>
        </h2>
        <StarButton slug={slug} />
        <Menu
          label={`Actions for ${slug}`}
          button={<EllipsisVertical />}
          items={[
            { label: "Open", icon: <FolderOpen />, onSelect: () => go(routes.pipeline(slug)) },
            { label: "Run", icon: <Play />, onSelect: () => void run(false) },
            { label: "Rename…", icon: <Pencil />, onSelect: () => setDialog("rename") },
            {
              label: "Export",
              icon: <Download />,
              hint: "Config, dashboards, CSVs and tables as a .zip",
              onSelect: () => exportPipeline(slug),
            },
            { label: "Delete…", icon: <Trash2 />, danger: true, onSelect: () => setDialog("delete") },
          ]}
        />
      </header>
      <p class="row">
        <code class="dim cut">{slug}</code>
        {starred && <Star class="for-readers" aria-label="Starred" />}
        <span class="grow" />
        <Size card={card} />
      </p>
      <Sparkline marks={marksOf(card)} />
      <p class="row pipelines-foot">
        <LastRun card={card} />
        <PausedBadge slug={slug} />
        {card.config === "valid" ? card.last_job && <PipelineBadge slug={slug} /> : <Config card={card} />}
        <span class="grow" />
        {card.config === "valid" && (
          <span class="dim pipelines-next">
            <Next card={card} />
          </span>
        )}
      </p>
      {dialog === "rename" && <RenamePipeline slug={slug} onDone={close} onClose={close} />}
      {dialog === "delete" && <DeletePipeline slug={slug} onDone={close} onClose={close} />}
    </li>
  );
});
