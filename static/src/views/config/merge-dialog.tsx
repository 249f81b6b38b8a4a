import { useQuery } from "@tanstack/preact-query";
import { useMemo, useState } from "preact/hooks";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Diff } from "../../components/editor";
import { Failed, Note, Skeleton } from "../../components/states";
import { counted } from "../../format/number";
import type { Stored } from "./draft";
import { lineAndColumn } from "../../format/text";
import { syntaxProblem } from "../../format/json";
import { chosen, conflictsOf, merge, type Choice, type Conflict } from "./merge";
import { checkConfig } from "../../api/config";
import { stored } from "./service";

const DIFF_PX = 280;
const RESOLUTIONS = ["mine", "theirs", "both", "edit"] as const;
const WORDS = { mine: "Mine", theirs: "Theirs", both: "Both", edit: "Edit" };

interface ConflictProps {
  number: number;
  of: number;
  conflict: Conflict;
  choice: Choice | undefined;
  onChoose: (choice: Choice) => void;
}

const shown = (lines: string[]): string => (lines.length > 0 ? lines.join("\n") : "(nothing)");

function ConflictPart({ number, of, conflict, choice, onChoose }: ConflictProps) {
  const way = typeof choice === "object" ? "edit" : choice;
  const take = (wanted: (typeof RESOLUTIONS)[number]) =>
    onChoose(wanted === "edit" ? { text: conflict.mine.join("\n") } : wanted);
  return (
    <fieldset class="config-conflict">
      <legend>
        Conflict {number} of {of}
      </legend>
      <div class="config-sides">
        <div>
          <h3>Mine</h3>
          <pre>{shown(conflict.mine)}</pre>
        </div>
        <div>
          <h3>Theirs</h3>
          <pre>{shown(conflict.theirs)}</pre>
        </div>
      </div>
      <div class="row wrap">
        {RESOLUTIONS.map((one) => (
          <label key={one} class="checkbox">
            <input type="radio" name={`conflict-${number}`} checked={way === one} onChange={() => take(one)} />
            <span>{WORDS[one]}</span>
          </label>
        ))}
      </div>
      {typeof choice === "object" && (
        <textarea
          class="input mono"
          aria-label={`Text for conflict ${number}`}
          rows={Math.min(12, Math.max(3, choice.text.split("\n").length))}
          value={choice.text}
          onInput={(event) => onChoose({ text: event.currentTarget.value })}
        />
      )}
    </fieldset>
  );
}

/** Problems of the result, which must be valid JSON. */
function Verdict({ slug, result }: { slug: string; result: string }) {
  const syntax = syntaxProblem(result);
  const found = useQuery({
    queryKey: ["p", slug, "config", "verdict", result],
    queryFn: ({ signal }) => checkConfig(slug, result, signal),
    enabled: !syntax,
    gcTime: 0,
    retry: false,
  });
  if (syntax)
    return (
      <Note tone="bad">
        The result is invalid JSON: line {lineAndColumn(result, syntax.offset).line}, {syntax.message}. Change a choice,
        or edit a conflict.
      </Note>
    );
  const problems = found.data?.problems ?? [];
  if (problems.length === 0) return <p class="secondary">{found.data ? "The result has no problems." : "Checking"}</p>;
  return (
    <Note tone="warn">
      The result has {counted(problems.length, "problem")}: {problems[0]?.message}
    </Note>
  );
}

interface BodyProps {
  slug: string;
  base: string | undefined;
  mine: string;
  theirs: Stored;
  onTake: (text: string) => void;
  onClose: () => void;
}

function Merge({ slug, base, mine, theirs, onTake, onClose }: BodyProps) {
  const merging = useMemo(() => merge(base, mine, theirs.text), [base, mine, theirs.text]);
  const conflicts = conflictsOf(merging.pieces);
  const [choices, setChoices] = useState<(Choice | undefined)[]>([]);
  const result = chosen(merging.pieces, choices);
  const left = conflicts.filter((_, at) => choices[at] === undefined).length;
  const choose = (at: number, choice: Choice) => {
    const next = conflicts.map((_, other) => choices[other]);
    next[at] = choice;
    setChoices(next);
  };
  const ready = result !== undefined && !syntaxProblem(result);
  return (
    <Dialog
      title="Merge config changes"
      kind="wide"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Back to editing</Button>
          <Button variant="primary" disabled={!ready} onClick={() => result !== undefined && onTake(result)}>
            Use merged config
          </Button>
        </>
      }
    >
      {conflicts.length === 0 ? (
        <Note tone="ok">No conflicts. Both sets of changes are kept.</Note>
      ) : (
        <p>
          Someone else changed the same lines.{" "}
          {left > 0 ? `${counted(left, "conflict")} to resolve.` : "All conflicts resolved."} Other changes are merged
          automatically.
        </p>
      )}
      {merging.formatted && <p class="secondary">Both versions were formatted before merging.</p>}
      {conflicts.map((conflict, at) => (
        <ConflictPart
          key={`${at}`}
          number={at + 1}
          of={conflicts.length}
          conflict={conflict}
          choice={choices[at]}
          onChoose={(choice) => choose(at, choice)}
        />
      ))}
      {result !== undefined && (
        <>
          <Verdict slug={slug} result={result} />
          <div class="config-diff">
            <Diff
              label="Changes"
              language="json"
              before={theirs.text}
              after={result}
              beforeName="Saved"
              afterName="Merged"
              height={DIFF_PX}
            />
          </div>
        </>
      )}
    </Dialog>
  );
}

interface Props {
  slug: string;
  /** The common base, if known. */
  base: string | undefined;
  mine: string;
  onTake: (theirs: Stored, text: string) => void;
  onClose: () => void;
}

/** Merges the typed text with the stored config. */
export function MergeDialog({ slug, base, mine, onTake, onClose }: Props) {
  const theirs = useQuery({
    queryKey: ["p", slug, "config", "theirs"],
    queryFn: () => stored(slug),
    gcTime: 0,
    staleTime: Infinity,
    refetchOnWindowFocus: false,
  });
  const { data } = theirs;
  if (data)
    return (
      <Merge
        key={data.etag ?? data.text}
        slug={slug}
        base={base}
        mine={mine}
        theirs={data}
        onTake={(text) => onTake(data, text)}
        onClose={onClose}
      />
    );
  return (
    <Dialog title="Merge config changes" kind="wide" onClose={onClose}>
      {theirs.error ? (
        <Failed title="Couldn't load the saved config" error={theirs.error} onRetry={() => void theirs.refetch()} />
      ) : (
        <Skeleton lines={10} />
      )}
    </Dialog>
  );
}
