import { useQuery } from "@tanstack/preact-query";
import { Link } from "wouter-preact";
import { isActive, jobsQuery } from "../../api/queries";
import { Button } from "../../components/button";
import { Empty } from "../../components/states";
import { routes } from "../../browser/routes";
import { askForFiles } from "../../shell/upload-request";

/** Empty state by what was done so far. */
export function NoTables({ slug }: { slug: string }) {
  const { data } = useQuery(jobsQuery(slug));
  const active = data?.jobs.find(isActive);
  const last = data?.jobs[0];
  if (active) {
    return (
      <Empty
        title="First run in progress"
        actions={
          <Link class="button" href={`~${routes.job(slug, active.job_id)}`}>
            Show run
          </Link>
        }
      >
        Tables can be queried when the run has published them.
      </Empty>
    );
  }
  return (
    <Empty
      title="No tables yet"
      actions={
        <>
          <Button variant="primary" onClick={() => askForFiles(slug)}>
            Upload CSVs
          </Button>
          <Link class="button" href={`~${routes.config(slug)}`}>
            Open config
          </Link>
          {last && (
            <Link class="button" href={`~${routes.job(slug, last.job_id)}`}>
              Show last run
            </Link>
          )}
        </>
      }
    >
      Upload CSVs, define tables in the config, then run the pipeline.
    </Empty>
  );
}
