import { Check, ChevronDown, ChevronUp, Pause, Play, RotateCcw, X } from "lucide-preact";
import { useQuery } from "@tanstack/preact-query";
import { useEffect, useRef, useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { isPaused, pausesQuery } from "../api/pauses";
import { api, ask } from "../api/client";
import { IDLE_POLL_MS, jobQuery, jobsQuery, LIVE_MS, pipelinesQuery, statusQuery } from "../api/queries";
import type { Job } from "../api/types";
import { connection } from "../api/connection";
import { session } from "../api/session";
import { Button, IconButton } from "../components/button";
import { MessageText } from "../components/message-text";
import { Bar } from "../components/status";
import { bytes, count, counted } from "../format/number";
import { duration } from "../format/time";
import { routes } from "../browser/routes";
import { useUnsaved } from "../browser/unsaved";
import { uploads } from ".";
import { nameOf, namesOf } from "./keys";
import type { Batch, QueueState, Upload, UploadState } from "./queue";
import { conflictText, hasRead, outcomeOf, type Tone } from "./outcome";
import "./dock.css";

/** Maximum number of listed files. */
const SHOWN_MAX = 60;

const WORDS: Record<UploadState, string> = {
  waiting: "waiting",
  sending: "sending",
  resting: "retrying soon",
  exists: "already exists",
  done: "uploaded",
  kept: "skipped",
  failed: "failed",
  refused: "invalid",
  cancelled: "cancelled",
};

const hasTrouble = ({ counts }: QueueState): boolean => counts.failed + counts.refused > 0;

/** Upload panel, shown in every view during uploads. */
export function UploadDock() {
  const queue = uploads.state.value;
  // Unset: what failed is listed.
  const [open, setOpen] = useState<boolean>();
  const panel = useRef<HTMLElement>(null);
  const [path] = useLocation();
  const settled = useRef(false);
  // Going to another view dismisses the panel once everything is loaded; what failed stays.
  useEffect(() => {
    if (settled.current && !hasTrouble(uploads.state.peek())) uploads.clear();
    settled.current = false;
  }, [path]);
  useUnsaved("uploads in progress", queue.active, "page");
  const isShown = queue.files > 0;
  // Views end above the panel, however high it is.
  useEffect(() => {
    const node = panel.current;
    const { style } = document.documentElement;
    if (!node) return undefined;
    const observer = new ResizeObserver(() => style.setProperty("--dock", `${node.offsetHeight}px`));
    observer.observe(node);
    return () => {
      observer.disconnect();
      style.removeProperty("--dock");
      setOpen(undefined);
    };
  }, [isShown]);
  if (!isShown) return null;
  const listed = open ?? hasTrouble(queue);
  return (
    <section ref={panel} class="uploads" aria-label="Uploads">
      <header class="uploads-head">
        <span class="grow" role="status">
          <strong>{heading(queue)}</strong>
          <span class="uploads-pace secondary">{rateText(queue)}</span>
        </span>
        <Controls queue={queue} open={listed} onOpen={() => setOpen(!listed)} />
      </header>
      <Bar done={queue.bytesSent} total={queue.bytesTotal} label="Uploaded" />
      {queue.counts.exists > 0 && <Conflict />}
      {listed && <Files files={queue.files} />}
      <Outcomes onSettled={(isSettled) => (settled.current = isSettled)} />
    </section>
  );
}

/** Uploads whose outcome is shown. */
const OUTCOMES_SHOWN = 4;

const idOf = (batch: Batch, slug: string): string => `${batch.uploads[0]?.id ?? 0} ${slug}`;

/** What became of each upload that has ended; several are named. */
function Outcomes({ onSettled }: { onSettled: (isSettled: boolean) => void }) {
  const ended = uploads.ended(OUTCOMES_SHOWN);
  const present = new Set(uploads.batches());
  const several = ended.length > 1 || [...present].some(({ left }) => left > 0);
  const shown = ended.map((batch) => ({ batch, uploaded: [...uploads.uploadedBy(batch)] }));
  const tones = useRef(new Map<string, Tone | undefined>());
  const ids = shown.flatMap(({ batch, uploaded }) => uploaded.map(([slug]) => idOf(batch, slug)));
  const report = (id: string, tone: Tone | undefined) => {
    tones.current.set(id, tone);
    onSettled(ids.length > 0 && ids.every((one) => tones.current.get(one) === "ok"));
  };
  return (
    // Scrollable regions must be reachable by keyboard.
    <div class="uploads-outcomes" tabIndex={0} role="group" aria-label="Outcomes">
      {shown.map(({ batch, uploaded }) =>
        uploaded.map(([slug, keys]) => (
          <Outcome
            key={idOf(batch, slug)}
            onTone={(tone) => report(idOf(batch, slug), tone)}
            slug={slug}
            keys={keys}
            of={several ? `${present.has(batch) ? "" : "Earlier, "}${namesOf(keys)}` : undefined}
          />
        )),
      )}
    </div>
  );
}

/** Uploads whose files are looked for in the lake, since they may have been deleted. */
const LOOKED_FOR_MAX = 20;

/** Those of a pipeline's uploaded files that are still in the lake; all while that isn't known. */
function useStored(slug: string, keys: string[]): string[] {
  const { data: gone } = useQuery({
    queryKey: ["lake", "gone", slug, keys],
    queryFn: async () => {
      const found = await Promise.all(
        keys.map(async (key) => {
          const prefix = `pipelines/${slug}/${key}`;
          const { files } = await ask(api.GET("/api/lake", { params: { query: { prefix, limit: 1 } } }));
          return files[0]?.key === prefix;
        }),
      );
      return keys.filter((_, at) => found[at] === false);
    },
    enabled: keys.length <= LOOKED_FOR_MAX,
    refetchInterval: IDLE_POLL_MS,
  });
  return gone === undefined ? keys : keys.filter((key) => !gone.includes(key));
}

/** Outcome of the uploaded files of a pipeline: loaded, failed, or read by no table. `of`: their names, if shown. */
function Outcome({
  slug,
  keys: uploaded,
  of,
  onTone,
}: {
  slug: string;
  keys: string[];
  of: string | undefined;
  onTone: (tone: Tone | undefined) => void;
}) {
  const keys = useStored(slug, uploaded);
  const { data: status } = useQuery({ ...statusQuery(slug), refetchInterval: LIVE_MS });
  const { data: listed } = useQuery(pipelinesQuery());
  const last = status?.last_job?.status === "completed" ? status.last_job.job_id : undefined;
  const { data: job, isPending } = useQuery({ ...jobQuery(slug, last ?? ""), enabled: last !== undefined });
  const { data: pauses } = useQuery(pausesQuery());
  const isHeld = isPaused(pauses, slug);
  const { data: jobs } = useQuery({ ...jobsQuery(slug), enabled: isHeld });
  const paused = isHeld && jobs?.jobs.some(({ status: now }) => now === "running") === false;
  // Later runs don't read the files again.
  const runs = useRef<Job[]>([]);
  if (job && hasRead(job, keys) && runs.current.at(-1)?.job_id !== job.job_id) runs.current.push(job);
  const latest = useRef(onTone);
  latest.current = onTone;
  const known = !status || (last !== undefined && isPending) ? undefined : status;
  const autoRun = listed?.pipelines.find((one) => one.slug === slug)?.auto_run !== false;
  const outcome =
    known && outcomeOf({ status: known, uploaded: uploaded.length, keys, autoRun, paused, runs: runs.current });
  const now = outcome?.tone;
  useEffect(() => latest.current(now), [now]);
  if (!outcome) return null;
  const { tone, text, job: failed, rejected } = outcome;
  return (
    <p class={tone === "bad" ? "uploads-outcome bad" : "uploads-outcome"} role="status">
      {of !== undefined && <strong>{of}: </strong>}
      <MessageText text={text} />{" "}
      {failed !== undefined && <Link href={`~${routes.job(slug, failed)}`}>How to fix this</Link>}
      {rejected !== undefined && (
        <Link href={`~${routes.data(slug, rejected.table, { tab: "rejected", source: rejected.source })}`}>
          Show rejected rows
        </Link>
      )}
    </p>
  );
}

function heading({ active, counts, files }: QueueState): string {
  const ended = counts.done + counts.kept;
  const batches = uploads.batches().length;
  if (active) return `${count(ended)} of ${counted(files, "file")}`;
  const lost = counts.failed + counts.refused;
  const several = batches > 1 ? ` in ${counted(batches, "upload")}` : "";
  const parts = [`${count(ended)} of ${counted(files, "file")} uploaded${several}`];
  if (lost > 0) parts.push(`${count(lost)} failed`);
  if (counts.cancelled > 0) parts.push(`${count(counts.cancelled)} cancelled`);
  return parts.join(", ");
}

function rateText(queue: QueueState): string {
  const { active, paused, bytesSent, bytesTotal, packing, rate, secondsLeft, counts } = queue;
  if (!active) return bytes(bytesTotal);
  const sent = `${bytes(bytesSent)} of ${bytes(bytesTotal)}`;
  const parts = packing ? [`compressing: ${bytes(packing.done)} of ${bytes(packing.total)}`] : [sent];
  if (packing && bytesSent > 0) parts.push(`${sent} sent`);
  if (paused) parts.push("paused");
  else if (session.state.value !== "in") parts.push("waiting for login");
  else if (connection.state.value !== "ok") parts.push("waiting for the service");
  else if (counts.sending > 0 && rate > 0) {
    parts.push(`${bytes(rate)}/s`);
    if (secondsLeft !== undefined) parts.push(`${duration(Math.max(1, Math.ceil(secondsLeft)) * 1_000)} left`);
  }
  return parts.join(" · ");
}

function Controls({ queue, open, onOpen }: { queue: QueueState; open: boolean; onOpen: () => void }) {
  const { active, paused, counts } = queue;
  return (
    <>
      {active && !paused && <IconButton label="Pause" icon={<Pause />} onClick={() => uploads.pause()} />}
      {active && paused && <IconButton label="Resume" icon={<Play />} onClick={() => uploads.resume()} />}
      {counts.failed > 0 && <IconButton label="Retry failed" icon={<RotateCcw />} onClick={() => uploads.retry()} />}
      <IconButton
        label={open ? "Hide files" : "Show files"}
        aria-expanded={open}
        icon={open ? <ChevronDown /> : <ChevronUp />}
        onClick={onOpen}
      />
      {active ? (
        <IconButton label="Cancel all uploads" icon={<X />} onClick={() => uploads.cancelAll()} />
      ) : (
        <IconButton label="Dismiss" icon={<Check />} onClick={() => uploads.clear()} />
      )}
    </>
  );
}

function Conflict() {
  return (
    <div class="uploads-conflict" role="alert">
      <span class="grow">{conflictText(uploads.existing())}</span>
      <Button onClick={() => uploads.decide(false)}>Skip</Button>
      <Button onClick={() => uploads.decide(true)}>Replace</Button>
    </div>
  );
}

function Files({ files }: { files: number }) {
  const shown = uploads.shown(SHOWN_MAX);
  return (
    // Scrollable regions must be reachable by keyboard.
    <ul class="uploads-files" tabIndex={0} aria-label="Files">
      {shown.map((upload) => (
        <File key={upload.id} upload={upload} state={upload.state} sent={upload.packed ?? upload.sent} />
      ))}
      {files > shown.length && <li class="dim">and {counted(files - shown.length, "more file", "more files")}</li>}
    </ul>
  );
}

function File({ upload, state, sent }: { upload: Upload; state: UploadState; sent: number }) {
  const name = nameOf(upload.key);
  const bad = state === "failed" || state === "refused";
  const part =
    state === "sending" && upload.size > 0 ? `${Math.floor((sent / upload.size) * 100)}%` : bytes(upload.size);
  return (
    <li class={bad ? "uploads-file bad" : "uploads-file"}>
      <div class="row">
        <span class="grow cut" title={upload.key}>
          {name}
        </span>
        <span class="num dim">{part}</span>
        <span class="uploads-state">{upload.packed === undefined ? WORDS[state] : "compressing"}</span>
        {state === "failed" && (
          <IconButton label={`Retry ${name}`} icon={<RotateCcw />} onClick={() => uploads.retry(upload)} />
        )}
        {(state === "waiting" || state === "sending" || state === "resting") && (
          <IconButton label={`Cancel ${name}`} icon={<X />} onClick={() => uploads.cancel(upload)} />
        )}
      </div>
      {upload.why && <p class="uploads-why">{upload.why}</p>}
    </li>
  );
}
