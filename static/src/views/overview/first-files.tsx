import { useQuery } from "@tanstack/preact-query";
import { FileUp, FolderInput, Webhook } from "lucide-preact";
import { isPaused, pausesQuery } from "../../api/pauses";
import { pipelinesQuery } from "../../api/queries";
import { Button } from "../../components/button";
import { Section } from "../../components/page";
import { askForFiles } from "../../shell/upload-request";
import { nextRunText } from "../../uploads/outcome";

/** Ways to add CSVs to an empty pipeline. */
export function FirstFiles({ slug }: { slug: string }) {
  const prefix = `pipelines/${slug}/`;
  const { data: listed } = useQuery(pipelinesQuery());
  const { data: pauses } = useQuery(pausesQuery());
  const autoRun = listed?.pipelines.find((one) => one.slug === slug)?.auto_run !== false;
  const next = nextRunText({ paused: isPaused(pauses, slug), autoRun });
  return (
    <Section title="Add data">
      <ul class="overview-ways">
        <li class="card">
          <FileUp aria-hidden="true" />
          <h3>Upload CSVs</h3>
          <p class="secondary">Drop CSVs anywhere on this page. {next}</p>
          <Button onClick={() => askForFiles(slug)}>Choose files</Button>
        </li>
        <li class="card">
          <FolderInput aria-hidden="true" />
          <h3>Write to the lake</h3>
          <p class="secondary">
            Programs with access to the lake's bucket or folder can write CSVs to <code>{prefix}</code>. The next run
            reads them.
          </p>
        </li>
        <li class="card">
          <Webhook aria-hidden="true" />
          <h3>Webhooks</h3>
          <p class="secondary">
            <code>lakemill webhook install</code> sets up an S3 store to notify Lakemill of new CSVs, so that runs start
            automatically. A local folder is watched.
          </p>
        </li>
      </ul>
    </Section>
  );
}
