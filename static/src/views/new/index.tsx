import { useCallback, useEffect, useState } from "preact/hooks";
import { useSearch } from "wouter-preact";
import { Button } from "../../components/button";
import { Page } from "../../components/page";
import { Note, Skeleton } from "../../components/states";
import { counted } from "../../format/number";
import { namesOf } from "../../uploads/keys";
import { droppedFiles } from "../../uploads/dropped";
import { sizeProblem } from "../../uploads/parts";
import { Wizard } from "./form";
import { groupsOf, type Group } from "./groups";
import { SourceStep } from "./source";
import "./new.css";

/** Names of files that are kept. */
const NAMED_MAX = 20;

/** The files named by the state of the history entry that shows their proposal. */
function proposedFiles(): string[] | undefined {
  const state: unknown = history.state;
  const names = typeof state === "object" && state !== null && "proposal" in state ? state.proposal : undefined;
  return Array.isArray(names) ? names.map(String) : undefined;
}

const isAtProposal = (): boolean => proposedFiles() !== undefined;

/** The files' proposal: `a.csv and 2 more files`. */
const proposalOf = ([first, ...others]: File[]): string =>
  `The proposal for ${first?.name ?? ""}${others.length > 0 ? ` and ${counted(others.length, "more file")}` : ""}`;

/** Wizard for new tables from CSVs: of a new pipeline, or of one that exists. */
export default function FromCsvView() {
  const query = new URLSearchParams(useSearch());
  const key = query.get("key") ?? undefined;
  const target = query.get("pipeline") ?? undefined;
  const [chosen, setChosen] = useState<{ round: number; files: File[] }>({ round: 0, files: [] });
  const [groups, setGroups] = useState<Group[]>();
  // Back leads from the proposal to the choice of files, and loses neither.
  const [away, setAway] = useState(false);
  // The history entry outlives the files.
  const [lost, setLost] = useState(proposedFiles);
  const show = useCallback((files: File[]) => {
    setAway(false);
    setLost(undefined);
    const state = { proposal: files.slice(0, NAMED_MAX).map(({ name }) => name) };
    if (isAtProposal()) history.replaceState(state, "");
    else history.pushState(state, "");
  }, []);
  const choose = useCallback(
    (files: File[]) => {
      setChosen(({ round }) => ({ round: round + 1, files }));
      if (files.length > 0) show(files);
    },
    [show],
  );
  useEffect(() => {
    const look = () => setAway(!isAtProposal());
    window.addEventListener("popstate", look);
    return () => window.removeEventListener("popstate", look);
  }, []);
  const dropped = droppedFiles.value;
  useEffect(() => {
    if (dropped.length === 0) return;
    choose(dropped);
    droppedFiles.value = [];
  }, [dropped, choose]);
  useEffect(() => {
    let ended = false;
    setGroups(undefined);
    if (chosen.files.length > 0)
      void groupsOf(chosen.files).then((found) => {
        if (!ended) setGroups(found);
      });
    return () => {
      ended = true;
    };
  }, [chosen]);
  const cancel = () => {
    choose([]);
    if (key) history.replaceState(null, "", location.pathname);
  };
  // Until others are chosen, these can be returned to.
  const chooseOthers = () => (chosen.files.length > 0 && isAtProposal() ? history.back() : cancel());
  const refused = chosen.files.map(({ name, size }) => sizeProblem(name, size)).find((one) => one !== undefined);
  const heading = target ? "New table from CSV" : "New pipeline from CSV";
  const starting = (chosen.files.length === 0 && key === undefined) || refused !== undefined;
  const back = away && !starting && chosen.files.length > 0;
  return (
    <Page title={heading} heading={heading}>
      {refused !== undefined && <Note tone="bad">{refused}.</Note>}
      {back && (
        <Note>
          <div class="row wrap">
            <span class="grow">{proposalOf(chosen.files)} is still open, with your changes.</span>
            <Button onClick={() => show(chosen.files)}>Continue</Button>
          </div>
        </Note>
      )}
      {starting && lost && lost.length > 0 && (
        <Note>
          The files chosen here are no longer open, because the page was loaded anew. Nothing was created. Choose{" "}
          {namesOf(lost)} again.
        </Note>
      )}
      {(starting || back) && <SourceStep fromLake={!target} onFiles={choose} />}
      {!starting && (
        <div hidden={back}>
          {chosen.files.length > 0 && !groups ? (
            <Skeleton lines={12} />
          ) : (
            <Wizard
              key={chosen.round}
              groups={chosen.files.length > 0 ? (groups ?? []) : []}
              lakeKey={chosen.files.length > 0 ? undefined : key}
              target={target}
              onOther={chooseOthers}
              onCancel={cancel}
              onRemove={(file) => choose(chosen.files.filter((one) => one !== file))}
            />
          )}
        </div>
      )}
    </Page>
  );
}
