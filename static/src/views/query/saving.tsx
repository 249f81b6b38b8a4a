import { useQuery, useQueryClient } from "@tanstack/preact-query";
import { useSignal } from "@preact/signals";
import { Save } from "lucide-preact";
import { api, ask, askWithResponse } from "../../api/client";
import { asFailure } from "../../api/failure";
import { keys, savedQueriesQuery } from "../../api/queries";
import type { SavedQuery } from "../../api/types";
import { Button } from "../../components/button";
import { Confirm, Dialog } from "../../components/dialog";
import { TextField } from "../../components/field";
import { Menu } from "../../components/menu";
import { Badge } from "../../components/status";
import { Time } from "../../components/time";
import { toast } from "../../components/toasts";
import { replaceText, stateOf } from "./state";

type Asking =
  | { kind: "name"; query?: SavedQuery }
  | { kind: "delete"; query: SavedQuery }
  | { kind: "changed"; theirs: SavedQuery };

/** A saved query with its ETag. */
async function stored(slug: string, id: string): Promise<{ query: SavedQuery; header: { "If-Match"?: string } }> {
  const path = { pipeline: slug, id };
  const { data, response } = await askWithResponse(api.GET("/api/p/{pipeline}/queries/{id}", { params: { path } }));
  const tag = response.headers.get("ETag");
  return { query: data, header: tag ? { "If-Match": tag } : {} };
}

/** Updates a query if its SQL is still `base`; returns the stored one on a conflict. */
async function update(slug: string, id: string, base: string, sql: string): Promise<SavedQuery | undefined> {
  const { query, header } = await stored(slug, id);
  if (query.sql !== base) return query;
  const params = { path: { pipeline: slug, id }, header };
  try {
    await ask(api.PUT("/api/p/{pipeline}/queries/{id}", { params, body: { name: query.name, sql } }));
    return undefined;
  } catch (error) {
    if (asFailure(error).code !== "precondition_failed") throw error;
    return (await stored(slug, id)).query;
  }
}

/** Renames a query; keeps its current SQL. */
async function rename(slug: string, id: string, name: string): Promise<SavedQuery> {
  const { query, header } = await stored(slug, id);
  const params = { path: { pipeline: slug, id }, header };
  return ask(api.PUT("/api/p/{pipeline}/queries/{id}", { params, body: { name, sql: query.sql } }));
}

/** Saves, renames and deletes queries, with dialogs. */
export function useSaving(slug: string) {
  const cache = useQueryClient();
  const state = stateOf(slug);
  const { data } = useQuery(savedQueriesQuery(slug));
  const asking = useSignal<Asking | undefined>(undefined);
  const busy = useSignal(false);
  const current = data?.queries.find(({ id }) => id === state.saved.value);

  const write = async (known: SavedQuery, base: string) => {
    if (busy.value) return;
    busy.value = true;
    const sql = state.text.value;
    try {
      const theirs = await update(slug, known.id, base, sql);
      asking.value = theirs ? { kind: "changed", theirs } : undefined;
      if (!theirs) {
        if (state.saved.value === known.id) state.base.value = sql;
        toast.done(`Saved ${known.name}`);
      }
      await cache.invalidateQueries({ queryKey: keys.saved(slug) });
    } catch (error) {
      toast.failed("Couldn't save the query", error);
    } finally {
      busy.value = false;
    }
  };
  const save = () => {
    if (!state.text.value.trim()) return;
    if (current) void write(current, state.base.value);
    else asking.value = { kind: "name" };
  };
  const close = () => (asking.value = undefined);
  const now = asking.value;
  const dialog = (
    <>
      {now?.kind === "name" && <NameDialog slug={slug} query={now.query} onClose={close} />}
      {now?.kind === "delete" && <DeleteDialog slug={slug} query={now.query} onClose={close} />}
      {now?.kind === "changed" && (
        <Confirm
          title={`Someone else changed ${now.theirs.name}`}
          action="Overwrite"
          busy={busy.value}
          onClose={close}
          onConfirm={() => void write(now.theirs, now.theirs.sql)}
        >
          <p>
            It was saved <Time at={now.theirs.updated_at} /> with different SQL. Your version is still in the editor;
            theirs is in the list of saved queries.
          </p>
        </Confirm>
      )}
    </>
  );
  const leave = () => replaceText(slug, "", data?.queries ?? []);
  return { save, leave, busy: busy.value, current, ask: (openDialog: Asking) => (asking.value = openDialog), dialog };
}

type Saving = ReturnType<typeof useSaving>;

function NameDialog({ slug, query, onClose }: { slug: string; query: SavedQuery | undefined; onClose: () => void }) {
  const cache = useQueryClient();
  const state = stateOf(slug);
  const name = useSignal(query?.name ?? "");
  const error = useSignal<string | undefined>(undefined);
  const busy = useSignal(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy.value || !name.value.trim()) return;
    busy.value = true;
    const sql = state.text.value;
    try {
      const params = { path: { pipeline: slug } };
      const saved = query
        ? await rename(slug, query.id, name.value)
        : await ask(api.POST("/api/p/{pipeline}/queries", { params, body: { name: name.value, sql } }));
      await cache.invalidateQueries({ queryKey: keys.saved(slug) });
      if (!query) {
        state.saved.value = saved.id;
        state.base.value = sql;
      }
      toast.done(query ? `Renamed the query to ${saved.name}` : `Saved ${saved.name}`);
      onClose();
    } catch (thrown) {
      const failure = asFailure(thrown);
      error.value =
        failure.code === "name_taken"
          ? `A saved query named ${name.value} already exists. Choose another name.`
          : failure.message;
    } finally {
      busy.value = false;
    }
  };
  return (
    <Dialog
      title={query ? "Rename saved query" : "Save query"}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="primary" type="submit" form="query-name" busy={busy.value} disabled={!name.value.trim()}>
            {query ? "Rename" : "Save"}
          </Button>
        </>
      }
    >
      <form id="query-name" onSubmit={(event) => void submit(event)}>
        <TextField
          label="Name"
          hint="Visible to everyone on this pipeline."
          error={error.value}
          maxLength={200}
          autofocus
          value={name.value}
          onInput={(event) => {
            name.value = event.currentTarget.value;
            error.value = undefined;
          }}
        />
      </form>
    </Dialog>
  );
}

function DeleteDialog({ slug, query, onClose }: { slug: string; query: SavedQuery; onClose: () => void }) {
  const cache = useQueryClient();
  const state = stateOf(slug);
  const busy = useSignal(false);
  const remove = async () => {
    busy.value = true;
    try {
      const path = { pipeline: slug, id: query.id };
      await ask(api.DELETE("/api/p/{pipeline}/queries/{id}", { params: { path } }));
      if (state.saved.value === query.id) state.saved.value = "";
      await cache.invalidateQueries({ queryKey: keys.saved(slug) });
      toast.done(`Deleted ${query.name}`);
    } catch (error) {
      toast.failed("Couldn't delete the query", error);
    }
    onClose();
  };
  return (
    <Confirm
      title={`Delete ${query.name}`}
      action="Delete"
      danger
      busy={busy.value}
      onClose={onClose}
      onConfirm={() => void remove()}
    >
      <p>
        The saved query <strong>{query.name}</strong> will be deleted for everyone. The text in the editor stays.
      </p>
    </Confirm>
  );
}

/** The open saved query and its actions. */
export function SavedControls({ slug, saving }: { slug: string; saving: Saving }) {
  const state = stateOf(slug);
  const { current, ask: openDialog } = saving;
  const edited = current !== undefined && current.sql !== state.text.value;
  return (
    <>
      {current && (
        <span class="query-name row">
          <span class="cut" title={current.name}>
            {current.name}
          </span>
          {edited && <Badge tone="warn">edited</Badge>}
        </span>
      )}
      <Button
        icon={<Save />}
        busy={saving.busy}
        disabled={!state.text.value.trim() || (current !== undefined && !edited)}
        onClick={saving.save}
      >
        Save
      </Button>
      {current && (
        <Menu
          label="More actions for this saved query"
          button="▾"
          items={[
            { label: "Save as new query…", onSelect: () => openDialog({ kind: "name" }) },
            { label: "Rename…", onSelect: () => openDialog({ kind: "name", query: current }) },
            {
              label: "Revert to saved",
              disabled: !edited,
              onSelect: () => {
                state.text.value = current.sql;
                state.base.value = current.sql;
              },
            },
            { label: "New query", hint: "Clears the editor", onSelect: () => saving.leave() },
            { label: "Delete…", danger: true, onSelect: () => openDialog({ kind: "delete", query: current }) },
          ]}
        />
      )}
    </>
  );
}
