import { FileUp, FolderInput, Webhook } from "lucide-preact";
import { Link } from "wouter-preact";
import { Section } from "../../components/page";
import { places } from "../../browser/places";

/** How CSVs come to a pipeline that has none. */
export function FirstFiles({ slug }: { slug: string }) {
  const prefix = `pipelines/${slug}/`;
  return (
    <Section title="How data gets in">
      <ul class="overview-ways">
        <li class="card">
          <FileUp aria-hidden="true" />
          <h3>Upload here</h3>
          <p class="secondary">Drop CSVs into the pipeline's folder. A run starts 5 seconds after the last upload.</p>
          <Link class="button" href={`~${places.lake(prefix)}`}>
            Open the folder
          </Link>
        </li>
        <li class="card">
          <FolderInput aria-hidden="true" />
          <h3>Write into the lake</h3>
          <p class="secondary">
            Any program that can write to the lake's bucket or folder puts its CSVs under <code>{prefix}</code>. Run
            reads what is new.
          </p>
        </li>
        <li class="card">
          <Webhook aria-hidden="true" />
          <h3>Webhooks</h3>
          <p class="secondary">
            <code>lakemill webhook install</code> makes an S3 store notify Lakemill of each new CSV, so that runs start
            automatically. A folder is checked every minute.
          </p>
        </li>
      </ul>
    </Section>
  );
}
