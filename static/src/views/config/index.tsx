import { useQuery } from "@tanstack/preact-query";
import { useSignal } from "@preact/signals";
import { configQuery } from "../../api/queries";
import { Editor } from "../../components/editor";
import { Page } from "../../components/page";
import { Failed, Skeleton } from "../../components/states";
import { schemaQuery } from "./queries";

export default function ConfigView({ slug }: { slug: string }) {
  const stored = useQuery(configQuery(slug));
  const schema = useQuery(schemaQuery());
  const text = useSignal<string>();
  if (stored.error)
    return <Failed title="The config can't be shown" error={stored.error} onRetry={() => void stored.refetch()} />;
  if (!stored.data) return <Skeleton lines={12} />;
  return (
    <Page title={`Config · ${slug}`} full>
      <Editor
        label="Config"
        language="json"
        value={text.value ?? stored.data.text}
        schema={schema.data}
        onChange={(value) => (text.value = value)}
      />
    </Page>
  );
}
