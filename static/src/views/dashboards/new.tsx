import { useQuery } from "@tanstack/preact-query";
import { useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { asFailure } from "../../api/failure";
import { tablesQuery } from "../../api/queries";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { SelectField, TextField } from "../../components/field";
import { Note } from "../../components/states";
import { slugFault } from "../../format/slug";
import { routes } from "../../browser/routes";
import { freeName, makeDraft } from "../../boards/make";

export function NewDashboard({ slug, taken, onClose }: { slug: string; taken: string[]; onClose: () => void }) {
  const { data } = useQuery(tablesQuery(slug));
  const [, go] = useLocation();
  const [typed, setTyped] = useState<string>();
  const [picked, setPicked] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  /** A name whose creation got no answer. */
  const [attempted, setAttempted] = useState<string>();
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector("select")?.focus(), []);

  const tables = data?.tables.filter(({ system }) => !system) ?? [];
  const table = picked ?? tables[0]?.name ?? "";
  const name = typed ?? freeName(table, taken);
  const exists = taken.includes(name) && name !== attempted ? `A dashboard named ${name} already exists.` : undefined;
  const problem = slugFault(name, "name") ?? exists ?? error;

  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy || (problem && problem !== error)) return;
    setBusy(true);
    setError(undefined);
    try {
      await makeDraft(
        slug,
        name,
        tables.find((one) => one.name === table),
      );
      go(`~${routes.editDashboard(slug, name)}`);
    } catch (thrown) {
      const failure = asFailure(thrown);
      if (failure.status === 0) setAttempted(name);
      setError(failure.message);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="New dashboard"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="primary" busy={busy} onClick={() => form.current?.requestSubmit()}>
            Create draft
          </Button>
        </>
      }
    >
      <form ref={form} class="dash-new" onSubmit={(event) => void submit(event)}>
        <SelectField label="Start from" value={table} onChange={(event) => setPicked(event.currentTarget.value)}>
          {tables.map((one) => (
            <option key={one.name} value={one.name}>
              The table {one.name}
            </option>
          ))}
          <option value="">The template</option>
        </SelectField>
        <TextField
          label="Name"
          value={name}
          error={problem}
          hint="Used in the dashboard's URL."
          onInput={(event) => {
            setTyped(event.currentTarget.value);
            setError(undefined);
          }}
        />
        {data && tables.length === 0 && (
          <Note>This pipeline has no tables yet. After the first run, you can start from a table.</Note>
        )}
      </form>
    </Dialog>
  );
}
