import { useQuery } from "@tanstack/preact-query";
import { Link } from "wouter-preact";
import { isActive, jobsQuery } from "../../api/queries";
import { Empty } from "../../components/states";
import { places } from "../../browser/places";

/** A pipeline whose runs made no table yet: what comes next depends on what was done. */
export function NoTables({ slug }: { slug: string }) {
  const { data } = useQuery(jobsQuery(slug));
  const active = data?.jobs.find(isActive);
  const last = data?.jobs[0];
  if (active) {
    return (
      <Empty
        title="The first tables are being made"
        actions={
          <Link class="button" href={`~${places.job(slug, active.job_id)}`}>
            Watch the run
          </Link>
        }
      >
        They can be queried as soon as the run has published them.
      </Empty>
    );
  }
  return (
    <Empty
      title="There are no tables to query yet"
      actions={
        <>
          <Link class="button primary" href={`~${places.lake(`pipelines/${slug}/`)}`}>
            Add CSVs
          </Link>
          <Link class="button" href={`~${places.config(slug)}`}>
            Open the config
          </Link>
          {last && (
            <Link class="button" href={`~${places.job(slug, last.job_id)}`}>
              See the last run
            </Link>
          )}
        </>
      }
    >
      A run turns the CSVs that the config names into tables. Put CSVs into the lake, describe them in the config, and
      run the pipeline.
    </Empty>
  );
}
