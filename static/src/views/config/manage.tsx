import { useQuery, useQueryClient } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { api, ask } from "../../api/client";
import { asFailure, type ApiFailure } from "../../api/failure";
import { dashboardsQuery, keys, savedQueriesQuery, tablesQuery } from "../../api/queries";
import { renameStar } from "../../api/settings";
import { Confirm } from "../../components/dialog";
import { TextField } from "../../components/field";
import { Note } from "../../components/states";
import { say } from "../../components/toasts";
import { counted } from "../../format/number";
import { remedyOf } from "../../format/remedies";
import { places } from "../../browser/places";
import { filesQuery } from "./service";

const told = (failure: ApiFailure | undefined): string | undefined =>
  failure && [`${failure.message}.`, remedyOf(failure)].filter(Boolean).join(" ");

interface Props {
  slug: string;
  /** Unsaved text goes with the pipeline. */
  onGone: () => void;
  onClose: () => void;
}

/** Gives the pipeline another slug. */
export function RenameDialog({ slug, onGone, onClose }: Props) {
  const cache = useQueryClient();
  const [, go] = useLocation();
  const [name, setName] = useState(slug);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiFailure>();
  const rename = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      await ask(api.PATCH("/api/pipelines/{slug}", { params: { path: { slug } }, body: { newSlug: name } }));
      await renameStar(cache, slug, name).catch(() => undefined);
      onGone();
      await cache.invalidateQueries({ queryKey: keys.settings });
      await cache.invalidateQueries({ queryKey: keys.pipelines });
      say.done(`${slug} is called ${name} now`);
      go(`~${places.config(name)}`);
    } catch (error) {
      setFailure(asFailure(error));
      setBusy(false);
    }
  };
  return (
    <Confirm
      title={`Rename ${slug}`}
      action="Rename"
      busy={busy}
      ready={name !== "" && name !== slug}
      onConfirm={() => void rename()}
      onClose={onClose}
    >
      <TextField
        label="New slug"
        value={name}
        error={told(failure)}
        hint="1 to 63 of a-z, 0-9 and -, beginning with a letter or digit"
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <p class="secondary">
        All files, tables, dashboards and queries move with it. Addresses with the old slug lead nowhere afterwards. A
        large pipeline takes a while, and no run may be on.
      </p>
    </Confirm>
  );
}

function Losses({ slug }: { slug: string }) {
  const tables = useQuery(tablesQuery(slug)).data?.tables;
  const files = useQuery(filesQuery(slug)).data;
  const dashboards = useQuery(dashboardsQuery(slug)).data?.dashboards;
  const saved = useQuery(savedQueriesQuery(slug)).data;
  const queries = Array.isArray(saved) ? saved : saved?.queries;
  return (
    <ul class="config-losses">
      <li>
        {files
          ? `${files.more ? "more than " : ""}${counted(files.files.length, "file")} in the lake`
          : "its files in the lake"}
      </li>
      <li>
        {tables ? counted(tables.length, "table") : "its tables"}
        {tables && tables.length > 0 && `: ${tables.map(({ name }) => name).join(", ")}`}
      </li>
      <li>
        {dashboards ? counted(dashboards.length, "dashboard") : "its dashboards"} and{" "}
        {queries ? counted(queries.length, "saved query", "saved queries") : "its saved queries"}
      </li>
      <li>the config and the records of its jobs</li>
    </ul>
  );
}

/** Deletes all of the pipeline, once its slug is typed. */
export function DeleteDialog({ slug, onGone, onClose }: Props) {
  const cache = useQueryClient();
  const [, go] = useLocation();
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiFailure>();
  const remove = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      const { objects } = await ask(api.DELETE("/api/pipelines/{slug}", { params: { path: { slug } } }));
      onGone();
      go(`~${places.home()}`);
      say.done(`${slug} is deleted, with ${counted(objects, "object")}`);
      await cache.invalidateQueries({ queryKey: keys.pipelines });
    } catch (error) {
      setFailure(asFailure(error));
      setBusy(false);
    }
  };
  return (
    <Confirm
      title={`Delete ${slug}`}
      action="Delete the pipeline"
      danger
      busy={busy}
      ready={typed === slug}
      onConfirm={() => void remove()}
      onClose={onClose}
    >
      <p>This deletes for good:</p>
      <Losses slug={slug} />
      <p class="secondary">An export keeps all of it as one archive, which can be imported again.</p>
      {failure && <Note tone="bad">{told(failure)}</Note>}
      <TextField
        label={`Type ${slug} to confirm`}
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
    </Confirm>
  );
}
