import { useQueryClient } from "@tanstack/preact-query";
import { useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { asFailure } from "../../api/failure";
import { keys } from "../../api/queries";
import { Button } from "../../components/button";
import { TextField } from "../../components/field";
import { Note } from "../../components/states";
import { Bar } from "../../components/status";
import { toast } from "../../components/toasts";
import { bytes, counted } from "../../format/number";
import { remedyOf } from "../../format/remedies";
import { slugFault } from "../../format/slug";
import { routes } from "../../browser/routes";
import { useUnsaved } from "../../browser/unsaved";
import { sendArchive } from "./upload";

function Refusal({ error }: { error: unknown }) {
  const failure = asFailure(error);
  const remedy = failure.code === "already_exists" ? "Enter another URL name above." : remedyOf(failure);
  return (
    <Note tone="bad">
      <p>Nothing was imported: {failure.message}</p>
      {remedy && <p>{remedy}</p>}
      {failure.problems.length > 0 && (
        <ul>
          {failure.problems.slice(0, 20).map((problem, at) => (
            <li key={at}>
              {[problem.path, problem.message].filter((part) => typeof part === "string" && part !== "").join(": ")}
            </li>
          ))}
        </ul>
      )}
    </Note>
  );
}

/** Upload progress; then the service validates and imports. */
function Sent({ file, sent, onCancel }: { file: File; sent: number; onCancel: () => void }) {
  const whole = sent >= file.size;
  return (
    <div class="stack" role="status">
      <p class="row">
        <span class="grow">{whole ? "Checking and importing" : `${bytes(sent)} of ${bytes(file.size)} sent`}</span>
        <Button onClick={onCancel}>Cancel</Button>
      </p>
      <Bar done={Math.min(sent, file.size)} total={file.size} label="Sent" />
    </div>
  );
}

/** Imports an exported pipeline. */
export function ImportPipeline({
  taken,
  onSending,
}: {
  taken: readonly string[];
  /** Reports whether an import is in progress. */
  onSending: (is: boolean) => void;
}) {
  const cache = useQueryClient();
  const [, go] = useLocation();
  const [file, setFile] = useState<File>();
  const [slug, setSlug] = useState("");
  const [sent, setSent] = useState<number>();
  const [refused, setRefused] = useState<unknown>();
  const sending = useRef<{ cancel: () => void } | undefined>(undefined);
  useUnsaved("an import in progress", sent !== undefined);
  useEffect(() => () => sending.current?.cancel(), []);
  const fault = slug === "" ? undefined : (slugFault(slug) ?? (taken.includes(slug) ? `${slug} is taken.` : undefined));
  const start = async () => {
    if (!file || fault !== undefined || sent !== undefined) return;
    setRefused(undefined);
    setSent(0);
    onSending(true);
    const { done, cancel } = sendArchive(file, slug, setSent);
    sending.current = { cancel };
    try {
      const imported = await done;
      await cache.invalidateQueries({ queryKey: keys.pipelines });
      toast.done(`Imported ${imported.slug}: ${counted(imported.objects, "file")}, ${bytes(imported.bytes)}`);
      go(routes.pipeline(imported.slug));
    } catch (error) {
      if (asFailure(error).code !== "cancelled") setRefused(error);
    } finally {
      setSent(undefined);
      onSending(false);
      sending.current = undefined;
    }
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
    >
      <TextField
        label="Archive"
        type="file"
        accept=".zip,application/zip"
        class="pipelines-file"
        hint="A .zip from an export. The archive is validated before anything is written."
        onChange={(event) => {
          setFile(event.currentTarget.files?.[0]);
          setRefused(undefined);
        }}
      />
      <TextField
        label="URL name"
        class="mono"
        value={slug}
        placeholder="As in the archive"
        error={fault}
        hint="Import under another URL name"
        onInput={(event) => setSlug(event.currentTarget.value)}
      />
      {refused !== undefined && <Refusal error={refused} />}
      {file && sent !== undefined ? (
        <Sent file={file} sent={sent} onCancel={() => sending.current?.cancel()} />
      ) : (
        <Button variant="primary" type="submit" disabled={!file || fault !== undefined} class="pipelines-submit">
          Import
        </Button>
      )}
    </form>
  );
}
