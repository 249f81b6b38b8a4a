import { useQuery, useQueryClient } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import { pauseOf, pauseRuns, pausesQuery, resumeRuns, type Pause } from "../api/pauses";
import { Button } from "../components/button";
import { Confirm } from "../components/dialog";
import { TextField } from "../components/field";
import { Note } from "../components/states";
import { Badge } from "../components/status";
import { Time } from "../components/time";
import { toast } from "../components/toasts";
import { withRemedy } from "../format/remedies";

/** Longest reason that the API takes, in bytes; characters of other scripts have several. */
const REASON_CHARS_MAX = 125;

/** Pauses the runs of a pipeline; without `slug`, of all. */
export function PauseDialog({ slug, onClose }: { slug?: string; onClose: () => void }) {
  const cache = useQueryClient();
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<string>();
  const pause = async () => {
    setBusy(true);
    try {
      await pauseRuns(cache, slug, reason);
      onClose();
    } catch (error) {
      setRefused(withRemedy(error));
      setBusy(false);
    }
  };
  return (
    <Confirm
      title={slug === undefined ? "Pause all pipelines" : `Pause runs of ${slug}`}
      action="Pause"
      busy={busy}
      onConfirm={() => void pause()}
      onClose={onClose}
    >
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (!busy) void pause();
        }}
      >
        <p>
          No run starts until you resume; new files and requested runs wait. A run that is in progress goes on. Tables
          can be read as before.
        </p>
        <TextField
          label="Reason"
          hint="Optional; everybody sees it"
          autofocus
          maxLength={REASON_CHARS_MAX}
          value={reason}
          error={refused}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </form>
    </Confirm>
  );
}

/** Ends a pause; failures are shown. */
export function useResume(slug: string | undefined): { resume: () => Promise<void>; busy: boolean } {
  const cache = useQueryClient();
  const [busy, setBusy] = useState(false);
  const resume = async () => {
    setBusy(true);
    try {
      await resumeRuns(cache, slug);
    } catch (error) {
      toast.failed("Couldn't resume the runs", error);
    }
    setBusy(false);
  };
  return { resume, busy };
}

function Notice({ pause, slug }: { pause: Pause; slug?: string | undefined }) {
  const { resume, busy } = useResume(slug);
  return (
    <Note tone="warn">
      <div class="row wrap">
        <span class="grow">
          {slug === undefined ? "All pipelines were paused" : "Runs were paused"} <Time at={pause.since} />
          {pause.reason ? `: ${pause.reason}` : "."}
        </span>
        <Button busy={busy} onClick={() => void resume()}>
          {slug === undefined ? "Resume all" : "Resume runs"}
        </Button>
      </div>
    </Note>
  );
}

/** Says that all pipelines, or this one, are paused; nothing otherwise. */
export function PauseNotice({ slug }: { slug?: string }) {
  const { data } = useQuery(pausesQuery());
  const own = slug === undefined ? undefined : pauseOf(data, slug);
  return (
    <>
      {data?.all && <Notice pause={data.all} />}
      {own && <Notice pause={own} slug={slug} />}
    </>
  );
}

/** Badge of a paused pipeline. */
export function PausedBadge({ slug }: { slug: string }) {
  const { data } = useQuery(pausesQuery());
  const pause = pauseOf(data, slug) ?? data?.all;
  if (!pause) return null;
  return (
    <Badge tone="warn" title={pause.reason || undefined}>
      paused
    </Badge>
  );
}
