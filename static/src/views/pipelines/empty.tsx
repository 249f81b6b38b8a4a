import { useQueryClient } from "@tanstack/preact-query";
import { PlaneTakeoff } from "lucide-preact";
import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { Button } from "../../components/button";
import { toast } from "../../components/toasts";
import { routes } from "../../browser/routes";
import { DropCsv } from "./drop";
import { makeSample, SAMPLE_SLUG } from "./make";

/** Empty workspace: sample, or drop a CSV. */
export function EmptyWorkspace({ onMore }: { onMore: () => void }) {
  const cache = useQueryClient();
  const [, go] = useLocation();
  const [busy, setBusy] = useState(false);
  const sample = async () => {
    setBusy(true);
    try {
      await makeSample(cache, SAMPLE_SLUG);
      go(routes.pipeline(SAMPLE_SLUG));
    } catch (error) {
      toast.failed("Couldn't create the sample", error);
      setBusy(false);
    }
  };
  return (
    <div class="pipelines-first">
      <h1>Turn CSVs into tables</h1>
      <p class="secondary">
        A pipeline reads CSVs from the lake and turns them into tables that you can look at, chart and query. Get
        started:
      </p>
      <div class="pipelines-first-ways">
        <DropCsv large />
        <div class="drop-zone large plain">
          <PlaneTakeoff aria-hidden="true" />
          <h2>Try the flights sample</h2>
          <p class="secondary">
            Every flight that left New York City in 2013: 16 CSVs become five tables with 367,687 rows, and a dashboard.
            Takes a few seconds.
          </p>
          <Button busy={busy} onClick={() => void sample()}>
            Try the flights sample
          </Button>
        </div>
      </div>
      <p class="secondary">
        Or{" "}
        <button type="button" class="link" onClick={onMore}>
          start with an empty pipeline or import one
        </button>
        .
      </p>
    </div>
  );
}
