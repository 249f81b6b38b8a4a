import { useQueryClient } from "@tanstack/preact-query";
import { useEffect, useMemo, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { asFailure } from "../../api/failure";
import { keys } from "../../api/queries";
import { Button } from "../../components/button";
import { Confirm, Dialog } from "../../components/dialog";
import { Diff } from "../../components/editor";
import { Note, Skeleton } from "../../components/states";
import { toast } from "../../components/toasts";
import { counted } from "../../format/number";
import { routes } from "../../browser/routes";
import { changesBetween } from "./changes";
import type { Draft } from "./draft";
import type { Saved } from "../../api/dashboards";

interface Props {
  draft: Draft;
  onClose: () => void;
}

const isDraftData = ([, , , , what, draft]: readonly unknown[]): boolean => what === "data" && draft === true;

/** Publishes; `compared` shows the changes as YAML at once, else on demand. */
export function PublishDialog({
  slug,
  name,
  title,
  draft,
  compared,
  onClose,
}: Props & { slug: string; name: string; title: string; compared: boolean }) {
  const cache = useQueryClient();
  const [, go] = useLocation();
  const [ready, setReady] = useState(false);
  const [busy, setBusy] = useState(false);
  const [shown, setShown] = useState(compared);
  const [failed, setFailed] = useState<string>();
  useEffect(() => {
    let gone = false;
    // Compares the current text with the published version.
    Promise.all([draft.save(), draft.loadPublished()]).then(
      () => !gone && setReady(true),
      (error: unknown) => !gone && setFailed(asFailure(error).message),
    );
    return () => {
      gone = true;
    };
  }, [draft]);
  const publish = async () => {
    setBusy(true);
    setFailed(undefined);
    try {
      await draft.publish();
      await cache.invalidateQueries({
        queryKey: keys.dashboards(slug),
        // The draft is gone: its data isn't requested again.
        predicate: ({ queryKey }) => !isDraftData(queryKey),
      });
      toast.done(`Published ${title}`);
      go(`~${routes.dashboard(slug, name)}`);
    } catch (error) {
      const failure = asFailure(error);
      if (failure.status === 412) onClose();
      setFailed(failure.message);
      setBusy(false);
    }
  };
  const problems = draft.verdict.value?.errors.length ?? 0;
  return (
    <Dialog
      title={`Publish ${title}`}
      {...(shown ? { kind: "wide" as const } : {})}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{problems > 0 ? "Back to editing" : "Cancel"}</Button>
          <Button variant="primary" busy={busy} disabled={!ready} onClick={() => void publish()}>
            Publish
          </Button>
        </>
      }
    >
      {failed && <Note tone="bad">Couldn't publish: {failed}.</Note>}
      {problems > 0 && (
        <Note tone="warn">
          The draft has {counted(problems, "problem")}. Fix them before publishing; they are listed below the editor.
        </Note>
      )}
      <p>
        {draft.published.value
          ? "This version replaces the published one for everyone who can sign in to this service."
          : "Everyone who can sign in to this service sees the dashboard in the pipeline's list, with current data."}
      </p>
      <p class="secondary">
        Nobody sees it without signing in. Later changes are a draft again, which viewers don't see until you publish.
      </p>
      <Button variant="quiet" class="dash-changes" aria-expanded={shown} onClick={() => setShown(!shown)}>
        {shown ? "Hide changes" : `Show ${draft.published.value ? "changes" : "the dashboard"} as YAML`}
      </Button>
      {!shown ? undefined : ready ? (
        <div class="dash-diff">
          <Diff
            label={`Changes to ${name}`}
            language="yaml"
            before={draft.published.value?.text ?? ""}
            after={draft.text.value}
          />
        </div>
      ) : (
        <Skeleton lines={6} />
      )}
    </Dialog>
  );
}

export function DiscardDialog({ title, draft, onClose }: Props & { title: string }) {
  const [busy, setBusy] = useState(false);
  const discard = async () => {
    setBusy(true);
    try {
      await draft.discard();
      toast.done("Draft discarded");
      onClose();
    } catch (error) {
      toast.failed("Couldn't discard the draft", error);
      setBusy(false);
    }
  };
  return (
    <Confirm
      title={`Discard the draft of ${title}`}
      action="Discard"
      danger
      busy={busy}
      onConfirm={() => void discard()}
      onClose={onClose}
    >
      <p>All changes since {title} was published will be lost for everyone. The published version stays.</p>
    </Confirm>
  );
}

/** Resolves a concurrent save of the draft. */
export function ConflictDialog({ draft, theirs }: { draft: Draft; theirs: Saved }) {
  const [busy, setBusy] = useState(false);
  const [shown, setShown] = useState(false);
  const [mine, ancestor] = [draft.text.value, draft.ancestor.value];
  const sides = useMemo(
    () =>
      ancestor === undefined
        ? [{ title: "Yours, compared with theirs", changes: changesBetween(theirs.text, mine) }]
        : [
            { title: "You", changes: changesBetween(ancestor, mine) },
            { title: "Someone else", changes: changesBetween(ancestor, theirs.text) },
          ],
    [ancestor, mine, theirs],
  );
  const keepMine = async () => {
    setBusy(true);
    await draft.keepMine();
    setBusy(false);
  };
  return (
    <Dialog
      title="Someone else changed this draft"
      {...(shown ? { kind: "wide" as const } : {})}
      closable={false}
      onClose={() => undefined}
      actions={
        <>
          <Button onClick={() => draft.takeTheirs()}>Take theirs</Button>
          <Button variant="primary" busy={busy} onClick={() => void keepMine()}>
            Keep mine
          </Button>
        </>
      }
    >
      <p>Their version is saved, yours isn't. Take theirs to discard your changes, or keep mine to overwrite theirs.</p>
      <div class="dash-sides">
        {sides.map(({ title, changes }) => (
          <section key={title}>
            <h3>{title}</h3>
            {changes.length === 0 ? (
              <p class="secondary">No changes</p>
            ) : (
              <ul>
                {changes.map((change) => (
                  <li key={change}>{change}</li>
                ))}
              </ul>
            )}
          </section>
        ))}
      </div>
      <Button variant="quiet" class="dash-changes" aria-expanded={shown} onClick={() => setShown(!shown)}>
        {shown ? "Hide YAML" : "Show both as YAML"}
      </Button>
      {shown && (
        <div class="dash-diff">
          <Diff label="Theirs and yours" language="yaml" before={theirs.text} after={mine} />
        </div>
      )}
    </Dialog>
  );
}
