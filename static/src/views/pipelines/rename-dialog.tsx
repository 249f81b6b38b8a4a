import { useQueryClient } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import { api, ask } from "../../api/client";
import { asFailure } from "../../api/failure";
import { keys } from "../../api/queries";
import { renameStar } from "../../api/settings";
import { Confirm } from "../../components/dialog";
import { TextField } from "../../components/field";
import { say } from "../../components/toasts";
import { remedyOf } from "../../format/remedies";
import { slugFault } from "./slug";

const told = (error: unknown): string => {
  const failure = asFailure(error);
  return [failure.message, remedyOf(failure)].filter(Boolean).join(". ");
};

export function RenamePipeline({ slug, onClose }: { slug: string; onClose: () => void }) {
  const cache = useQueryClient();
  const [name, setName] = useState(slug);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<string>();
  const fault = name === slug ? undefined : slugFault(name);
  const rename = async () => {
    setBusy(true);
    try {
      await ask(api.PATCH("/api/pipelines/{slug}", { params: { path: { slug } }, body: { newSlug: name } }));
      await renameStar(cache, slug, name).catch(() => undefined);
      say.done(`${slug} is ${name} now`);
      onClose();
      void cache.invalidateQueries({ queryKey: keys.pipelines });
      cache.removeQueries({ queryKey: keys.pipeline(slug) });
    } catch (error) {
      setRefused(told(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Confirm
      title={`Rename ${slug}`}
      action="Rename"
      busy={busy}
      ready={name !== slug && fault === undefined}
      onConfirm={() => void rename()}
      onClose={onClose}
    >
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (name !== slug && !fault && !busy) void rename();
        }}
      >
        <TextField
          label="New slug"
          class="mono"
          autofocus
          value={name}
          error={refused ?? fault}
          hint="a-z, 0-9, _ and -, beginning with a letter or a digit"
          onInput={(event) => {
            setName(event.currentTarget.value);
            setRefused(undefined);
          }}
        />
        <p class="secondary">
          The addresses of its views change, and its folders in the lake, the warehouse and the pipelines bucket.
          Whatever uploads into <code>pipelines/{slug}/</code> must use the new folder. Its title stays.
        </p>
      </form>
    </Confirm>
  );
}
