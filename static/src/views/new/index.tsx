import { useCallback, useEffect, useState } from "preact/hooks";
import { useSearch } from "wouter-preact";
import { Button } from "../../components/button";
import { Page } from "../../components/page";
import { Note, Skeleton } from "../../components/states";
import { counted } from "../../format/number";
import { droppedFiles } from "../../uploads/dropped";
import { sizeProblem } from "../../uploads/parts";
import { Wizard } from "./form";
import { groupsOf, type Group } from "./groups";
import { SourceStep } from "./source";
import "./new.css";

/** State of the history entry that shows the proposal. */
const AT_PROPOSAL = { proposal: true };

function isAtProposal(): boolean {
  const state: unknown = history.state;
  return typeof state === "object" && state !== null && "proposal" in state;
}

/** The files' proposal: `a.csv and 2 more files`. */
const namesOf = ([first, ...others]: File[]): string =>
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
  const show = useCallback(() => {
    setAway(false);
    if (!isAtProposal()) history.pushState(AT_PROPOSAL, "");
  }, []);
  const choose = useCallback(
    (files: File[]) => {
      setChosen(({ round }) => ({ round: round + 1, files }));
      if (files.length > 0) show();
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
  const start = () => {
    choose([]);
    if (key) history.replaceState(null, "", location.pathname);
  };
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
            <span class="grow">{namesOf(chosen.files)} is still open, with your changes.</span>
            <Button onClick={show}>Continue</Button>
          </div>
        </Note>
      )}
      {(starting || back) && <SourceStep onFiles={choose} />}
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
              onOther={start}
              onRemove={(file) => choose(chosen.files.filter((one) => one !== file))}
            />
          )}
        </div>
      )}
    </Page>
  );
}
