import { useQuery } from "@tanstack/preact-query";
import { useEffect, useMemo, useState } from "preact/hooks";
import { asFailure } from "../../api/failure";
import { configQuery } from "../../api/queries";
import { Button } from "../../components/button";
import { Page } from "../../components/page";
import { Empty, Failed, Skeleton } from "../../components/states";
import { AddTable } from "./add-table";
import { ConfigDraft } from "./draft";
import { blankConfig } from "./insert";
import { Workbench } from "./workbench";
import "./config.css";

function Missing({ slug, onBegin }: { slug: string; onBegin: (text: string) => void }) {
  const [adding, setAdding] = useState(false);
  return (
    <>
      <Empty
        title="No config yet"
        actions={
          <>
            <Button variant="primary" onClick={() => setAdding(true)}>
              Generate from CSV…
            </Button>
            <Button onClick={() => onBegin(blankConfig(slug))}>Start from scratch</Button>
          </>
        }
      >
        The config defines which CSVs become which tables. Nothing is saved until you confirm.
      </Empty>
      {adding && (
        <AddTable
          slug={slug}
          config={undefined}
          onAdd={(mapping) => onBegin(blankConfig(slug, [mapping]))}
          onClose={() => setAdding(false)}
        />
      )}
    </>
  );
}

/** ETag that matches any version. */
const ANY = "*";

/** Starts a draft from a text, on top of nothing or of the unreadable version `etag`. */
function startDraft(draft: ConfigDraft, text: string, etag: string | null = null): void {
  draft.base.value = { text: "", etag };
  draft.text.value = text;
}

export default function ConfigView({ slug }: { slug: string }) {
  const stored = useQuery(configQuery(slug));
  const draft = useMemo(() => new ConfigDraft(slug), [slug]);
  const code = stored.error ? asFailure(stored.error).code : undefined;
  useEffect(() => draft.keeping(), [draft]);
  useEffect(() => {
    if (stored.data && !stored.isPlaceholderData) draft.arrived(stored.data);
    else if (code === "pipeline_config_not_found" && draft.unsaved()) draft.arrived({ text: "", etag: null });
  }, [draft, stored.data, stored.isPlaceholderData, code]);

  const title = `Config · ${slug}`;
  if (draft.base.value) {
    return (
      <Page title={title} full>
        <Workbench slug={slug} draft={draft} />
      </Page>
    );
  }
  return (
    <Page title={title}>
      {code === "pipeline_config_not_found" ? (
        <Missing slug={slug} onBegin={(text) => startDraft(draft, text)} />
      ) : stored.error ? (
        <Failed
          title="Couldn't load the config"
          error={stored.error}
          onRetry={() => void stored.refetch()}
          actions={
            code === "invalid_config" && (
              <Button onClick={() => startDraft(draft, blankConfig(slug), ANY)}>Replace with a new config</Button>
            )
          }
        />
      ) : (
        <Skeleton lines={16} label="Loading the config" />
      )}
    </Page>
  );
}
