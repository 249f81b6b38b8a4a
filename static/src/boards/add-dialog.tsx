import { useQuery } from "@tanstack/preact-query";
import { LayoutDashboard } from "lucide-preact";
import { useRef, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { asFailure } from "../api/failure";
import { textOf } from "../api/dashboards";
import { dashboardsQuery } from "../api/queries";
import { added, routes } from "../browser/routes";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { SelectField, TextField } from "../components/field";
import { Note } from "../components/states";
import { toast } from "../components/toasts";
import type { NewPanel } from "./add";
import { freeName } from "./make";
import { useTitled } from "./titles";
import { freeTitle, titleOf } from "./builder/choice";

interface Props {
  slug: string;
  panel: Omit<NewPanel, "title">;
  /** Title of a new dashboard. */
  suggested: string;
}

/** Opens the dialog that adds a chart to a dashboard. */
export function AddToDashboard({ ready, ...rest }: Props & { ready: boolean }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button icon={<LayoutDashboard />} disabled={!ready} onClick={() => setOpen(true)}>
        Add chart to dashboard
      </Button>
      {open && <AddDialog {...rest} onClose={() => setOpen(false)} />}
    </>
  );
}

function AddDialog({ slug, panel, suggested, onClose }: Props & { onClose: () => void }) {
  const { data } = useQuery({ ...dashboardsQuery(slug), staleTime: 0 });
  const [, go] = useLocation();
  const [picked, setPicked] = useState<string>();
  const [typed, setTyped] = useState<string>();
  const [named, setNamed] = useState(suggested);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  const form = useRef<HTMLFormElement>(null);
  const attempted = useRef<string>();
  const known = useTitled(slug, data?.dashboards);
  const isTwin = (title: string) => known.filter((one) => one.title === title).length > 1;
  // Once chosen, the order of titles that load later changes nothing.
  const chosen = picked ?? known[0]?.name ?? "";
  const isNew = chosen === "";
  const entry = data?.dashboards.find((one) => one.name === chosen);
  const { data: taken = [] } = useQuery({
    queryKey: ["p", slug, "panel titles", chosen, entry?.modified],
    queryFn: async ({ signal }) => {
      const [{ text }, yaml] = await Promise.all([
        textOf(slug, chosen, entry?.draft ?? false, signal),
        import("./yaml"),
      ]);
      return yaml.panelTitles(yaml.valueOf(yaml.parsed(text)));
    },
    enabled: entry !== undefined,
    staleTime: 0,
    retry: false,
  });
  const title = typed ?? freeTitle(titleOf(panel.choice), taken, panel.choice.kind);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy || !data) return;
    setBusy(true);
    setError(undefined);
    try {
      const { addToDashboard } = await import("./add");
      const whole = { ...panel, title: title.trim() || freeTitle(titleOf(panel.choice), taken, panel.choice.kind) };
      // Another attempt is for the same dashboard, which the first one may have created.
      const free = freeName(
        named,
        known.map((one) => one.name).filter((one) => one !== attempted.current),
      );
      const name = isNew ? free : chosen;
      if (isNew) attempted.current = name;
      const target = isNew ? { name, title: named.trim() || name } : { name };
      const id = await addToDashboard(slug, target, whole);
      toast.done(`Added “${whole.title}” to the draft of ${name}`);
      go(`~${routes.editDashboard(slug, name)}`, { state: added(id) });
    } catch (thrown) {
      setError(asFailure(thrown).message);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="Add chart to dashboard"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="primary" busy={busy} disabled={!data} onClick={() => form.current?.requestSubmit()}>
            Add panel
          </Button>
        </>
      }
    >
      <form ref={form} class="stack" onSubmit={(event) => void submit(event)}>
        <SelectField
          label="Dashboard"
          value={chosen}
          autofocus
          onChange={(event) => setPicked(event.currentTarget.value)}
        >
          {known.map((one) => (
            <option key={one.name} value={one.name}>
              {one.title}
              {isTwin(one.title) ? ` · ${one.name}` : ""}
              {one.published ? "" : " (draft)"}
            </option>
          ))}
          <option value="">New dashboard</option>
        </SelectField>
        {isNew && (
          <TextField
            label="Title of the dashboard"
            value={named}
            maxLength={200}
            onInput={(event) => setNamed(event.currentTarget.value)}
          />
        )}
        <TextField
          label="Title of the panel"
          value={title}
          maxLength={200}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <p class="secondary">The panel goes into the draft. Viewers see it after you publish.</p>
        {error && <Note tone="bad">Couldn't add the panel: {error}.</Note>}
      </form>
    </Dialog>
  );
}
