import { Button } from "../../components/button";
import { Note } from "../../components/states";
import { Time } from "../../components/time";
import type { ConfigDraft } from "./draft";

interface Props {
  draft: ConfigDraft;
  /** Just saved, and no run was started since. */
  saved: boolean;
  running: boolean;
  onRun: () => void;
  onMerge: () => void;
  onRestore: () => void;
}

/** Notices about the text: restored changes, concurrent changes, saved but not applied. */
export function Notices({ draft, saved, running, onRun, onMerge, onRestore }: Props) {
  const offered = draft.offeredDraft.value;
  return (
    <>
      {offered && (
        <Note tone="warn">
          <div class="row wrap">
            <span class="grow">
              You have unsaved changes from <Time at={offered.at} />, but the saved config was changed since then.
              Restore or discard your changes to continue editing.
            </span>
            <Button onClick={onRestore}>Restore and merge…</Button>
            <Button onClick={() => draft.discard()}>Discard</Button>
          </div>
        </Note>
      )}
      {draft.restored.value && draft.dirty.value && (
        <Note tone="run">
          <div class="row wrap">
            <span class="grow">Your unsaved changes were restored.</span>
            <Button onClick={() => (draft.restored.value = false)}>Keep</Button>
            <Button onClick={() => draft.discard()}>Discard</Button>
          </div>
        </Note>
      )}
      {draft.newerVersion.value && draft.dirty.value && (
        <Note tone="warn">
          <div class="row wrap">
            <span class="grow">Someone else saved this config while you were editing.</span>
            <Button onClick={onMerge}>Merge…</Button>
            <Button onClick={() => draft.discard()}>Discard mine</Button>
          </div>
        </Note>
      )}
      {saved && !draft.dirty.value && (
        <Note tone="ok">
          <div class="row wrap">
            <span class="grow">Config saved. It applies from the next run.</span>
            <Button variant="primary" busy={running} onClick={onRun}>
              Run now
            </Button>
          </div>
        </Note>
      )}
    </>
  );
}
