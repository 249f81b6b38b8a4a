import { useQuery } from "@tanstack/preact-query";
import type { ComponentChildren } from "preact";
import { aboutQuery, readyQuery } from "../../api/queries";
import type { About as AboutAnswer } from "../../api/types";
import { Section } from "../../components/page";
import { Failed, Skeleton } from "../../components/states";
import { Badge } from "../../components/status";
import { bytes, counted } from "../../format/number";
import { duration } from "../../format/time";

function Health({ of, name }: { of: "kv" | "store"; name: string }) {
  const { data, error } = useQuery(readyQuery());
  if (error) return <Badge tone="bad">status unknown</Badge>;
  if (!data) return <Badge>checking</Badge>;
  return data[of] ? <Badge tone="ok">{`${name} connected`}</Badge> : <Badge tone="bad">{`${name} unavailable`}</Badge>;
}

function Row({ term, children }: { term: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Sandboxing of SQL processes. */
function confinementText(confinement: AboutAnswer["confinement"]): string {
  if (!confinement) return "known after the first query";
  const { landlock, landlock_abi, seccomp, namespaces } = confinement;
  const parts = [
    landlock_abi === null ? "no Landlock" : `Landlock ABI ${String(landlock_abi)}, applied ${landlock}`,
    seccomp ? "seccomp" : "no seccomp",
    namespaces ? "own namespaces" : "no namespaces",
  ];
  return parts.join(", ");
}

const STORES: Record<string, string> = { folder: "Local folder", s3: "S3" };
const QUEUES: Record<string, string> = { sqlite: "SQLite, in the same folder", redis: "Redis" };

function Facts({ about }: { about: AboutAnswer }) {
  const { store, queue, limits } = about;
  return (
    <>
      <Row term="Version">
        Lakemill {about.version}, DuckDB {about.duckdb_version}, time zone database {about.tzdb_version}
      </Row>
      <Row term="Store">
        {STORES[store.kind] ?? store.kind}
        {store.endpoint && (
          <>
            {" "}
            at <code>{store.endpoint}</code>
          </>
        )}{" "}
        <Health of="store" name="store" />
        <p class="dim">
          Buckets <code>{store.buckets.lake}</code>, <code>{store.buckets.warehouse}</code>,{" "}
          <code>{store.buckets.pipelines}</code>
        </p>
      </Row>
      <Row term="Queue">
        {QUEUES[queue.kind] ?? queue.kind} <Health of="kv" name="queue" />
      </Row>
      <Row term="SQL sandbox">{confinementText(about.confinement)}</Row>
      <Row term="Uploads">{`up to ${bytes(limits.upload_bytes_max)} per file`}</Row>
      <Row term="Queries">
        {`up to ${counted(limits.query_rows_max, "row")} shown, ${duration(limits.query_timeout_s * 1_000)} per query`}
      </Row>
      <Row term="Imports">{`up to ${bytes(limits.import_bytes_max)} per archive`}</Row>
    </>
  );
}

/** Service details. */
export function About() {
  const { data, error, refetch } = useQuery(aboutQuery());
  return (
    <Section title="About">
      <div class="card">
        {error && !data ? (
          <Failed title="Couldn't load the service details" error={error} onRetry={() => void refetch()} />
        ) : data ? (
          <dl class="settings-facts">
            <Facts about={data} />
            <Row term="For developers">
              <span class="row wrap">
                <a href="/openapi.json">OpenAPI document</a>
                <a href="/schemas/pipeline.json">Config schema</a>
                <a href="/schemas/dashboard.json">Dashboard schema</a>
              </span>
            </Row>
          </dl>
        ) : (
          <Skeleton lines={7} />
        )}
      </div>
    </Section>
  );
}
