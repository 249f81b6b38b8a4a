import { Link } from "wouter-preact";
import type { ConfigStatus } from "../api/types";
import { Button } from "../components/button";
import { Note } from "../components/states";
import { counted } from "../format/number";
import { routes } from "../browser/routes";
import { useRun } from "./pipeline";

/** Notice that the config differs from the one the tables were built with, with the next step. */
export function ConfigNotice({ slug, config }: { slug: string; config: ConfigStatus | undefined }) {
  const { run, busy } = useRun(slug);
  switch (config?.state) {
    case "changed":
      return (
        <Note tone="warn">
          <div class="row wrap">
            <span class="grow">Config changed, not applied yet. Tables show the last run.</span>
            <Button busy={busy} onClick={() => void run(false)}>
              Run now
            </Button>
          </div>
        </Note>
      );
    case "invalid":
      return (
        <Note tone="bad">
          <div class="row wrap">
            <span class="grow">
              The config has {counted(Math.max(1, config.problems?.length ?? 0), "problem")}. Tables show the last run.
            </span>
            <Link class="button" href={`~${routes.config(slug)}`}>
              Fix config
            </Link>
          </div>
        </Note>
      );
    case "missing":
      return (
        <Note tone="warn">
          <div class="row wrap">
            <span class="grow">The pipeline has no config. Tables show the last run.</span>
            <Link class="button" href={`~${routes.config(slug)}`}>
              Write config
            </Link>
          </div>
        </Note>
      );
    case "applied":
    case "not_run":
    case undefined:
      return null;
  }
}
