import { useState } from "preact/hooks";
import { asFailure, type ApiFailure } from "../../api/failure";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Diff } from "../../components/editor";
import { Note } from "../../components/states";
import { counted } from "../../format/number";
import { remedyOf } from "../../format/remedies";
import type { Checked } from "./validation";
import type { Stored } from "./draft";
import { broken, ImpactList } from "../../tables/impact";
import { OutlookList } from "./next-run";
import type { Outlook } from "./outlook";
import { save } from "./service";

const DIFF_PX = 320;
const PROBLEMS_MAX = 8;

interface Props {
  slug: string;
  base: Stored;
  text: string;
  outlooks: Outlook[];
  checked: Checked;
  /** The version of the history that `text` came from. */
  restores: number | undefined;
  onSaved: (stored: Stored) => void;
  /** The stored config changed since the base. */
  onConflict: () => void;
  onClose: () => void;
}

/** No worker was available to check the expressions. */
const isUnchecked = ({ code }: ApiFailure): boolean => code === "worker_unavailable";

/** A refused strict save, which can be forced. */
const isRefusal = (failure: ApiFailure): boolean => failure.status === 422 || isUnchecked(failure);

function Refused({ failure }: { failure: ApiFailure }) {
  if (isUnchecked(failure))
    return (
      <Note tone="bad">
        Not saved: expressions couldn't be checked because no worker is available ({failure.message}). Try again when a
        worker responds at <code>SVC_WORKER_URL</code>, or save it unchecked. If an expression is invalid, runs will
        fail.
      </Note>
    );
  const problems = failure.problems as { message?: string; path?: string }[];
  return (
    <Note tone="bad">
      <p>
        The config has {counted(problems.length, "problem")}. You can save it anyway, but runs will fail until the
        problems are fixed.
      </p>
      <ul class="config-impact">
        {problems.slice(0, PROBLEMS_MAX).map(({ message, path }) => (
          <li key={`${String(path)} ${String(message)}`}>
            {message} {path && <code>{path}</code>}
          </li>
        ))}
      </ul>
    </Note>
  );
}

/** Shows changes and impact of a save; a config with problems needs confirmation. */
export function SaveDialog({ slug, base, text, outlooks, checked, restores, onSaved, onConflict, onClose }: Props) {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiFailure>();
  const refused = failure !== undefined && isRefusal(failure);
  const store = async (strict: boolean) => {
    setBusy(true);
    setFailure(undefined);
    try {
      onSaved(await save(slug, text, base, { strict, restores }));
    } catch (error) {
      const thrown = asFailure(error);
      setBusy(false);
      if (thrown.status === 412) onConflict();
      // The login covers this dialog; afterwards the button can be used again.
      else if (thrown.status !== 401) setFailure(thrown);
    }
  };
  return (
    <Dialog
      title="Save config"
      kind="wide"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          {refused && (
            <Button variant="danger" busy={busy} onClick={() => void store(false)}>
              Save anyway
            </Button>
          )}
          {(!refused || isUnchecked(failure)) && (
            <Button variant="primary" busy={busy} onClick={() => void store(true)}>
              {refused ? "Try again" : "Save"}
            </Button>
          )}
        </>
      }
    >
      {refused && <Refused failure={failure} />}
      {failure && !refused && (
        <Note tone="bad">
          The config wasn't saved: {failure.message}. {remedyOf(failure)}
        </Note>
      )}
      <div class="config-diff">
        <Diff
          label="Changes"
          language="json"
          before={base.text}
          after={text}
          beforeName="Saved"
          afterName="Yours"
          height={DIFF_PX}
        />
      </div>
      <h3>Next run</h3>
      <OutlookList slug={slug} edited={outlooks} />
      {broken(checked.verdict) > 0 && (
        <>
          <h3>Impact</h3>
          <ImpactList slug={slug} verdict={checked.verdict} />
        </>
      )}
    </Dialog>
  );
}
