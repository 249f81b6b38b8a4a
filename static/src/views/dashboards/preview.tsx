import { useQuery } from "@tanstack/preact-query";
import { useEffect, useRef } from "preact/hooks";
import { Note, Skeleton } from "../../components/states";
import { Board, useData } from "./board";
import { type DashboardDoc, isReadable, readDocument } from "./document";
import type { Saved } from "../../api/dashboards";

interface Props {
  slug: string;
  name: string;
  saved: Saved;
  /** Whether it is the draft. */
  draft: boolean;
}

/** Preview of the stored document; falls back to the last valid one. */
export function Preview({ slug, name, saved, draft }: Props) {
  const { data: read } = useQuery({
    queryKey: ["p", slug, "dashboards", name, "read", saved.text],
    queryFn: () => readDocument(saved.text),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const last = useRef<{ document: DashboardDoc; etag: string | null; draft: boolean } | undefined>(undefined);
  if (read && isReadable(read)) last.current = { document: read, etag: saved.etag, draft };
  const trouble = read && !isReadable(read) ? read : undefined;
  useEffect(() => {
    last.current = undefined;
  }, [slug, name]);
  if (!last.current) {
    return trouble ? (
      <Note tone="warn">
        Line {trouble.line} isn't valid YAML: {trouble.message}
      </Note>
    ) : (
      <Skeleton lines={6} />
    );
  }
  return (
    <>
      {trouble && (
        <Note tone="warn">
          Line {trouble.line} isn't valid YAML: {trouble.message} Showing the last valid version.
        </Note>
      )}
      <Filled slug={slug} name={name} {...last.current} />
    </>
  );
}

function Filled({
  slug,
  name,
  document,
  etag,
  draft,
}: {
  slug: string;
  name: string;
  document: DashboardDoc;
  etag: string | null;
  draft: boolean;
}) {
  const loaded = useData({ slug, name, draft, etag, document });
  return (
    <>
      {document.description && <p class="secondary">{document.description}</p>}
      <Board slug={slug} document={document} loaded={loaded} />
    </>
  );
}
