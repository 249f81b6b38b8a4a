import { useEffect, useState } from "preact/hooks";
import { useSearch } from "wouter-preact";
import { Page } from "../../components/page";
import { Note, Skeleton } from "../../components/states";
import { droppedFiles } from "../../uploads/dropped";
import { sizeProblem } from "../../uploads/parts";
import { Wizard } from "./form";
import { groupsOf, type Group } from "./groups";
import { SourceStep } from "./source";
import "./new.css";

/** Wizard for new tables from CSVs: of a new pipeline, or of one that exists. */
export default function FromCsvView() {
  const query = new URLSearchParams(useSearch());
  const key = query.get("key") ?? undefined;
  const target = query.get("pipeline") ?? undefined;
  const [chosen, setChosen] = useState<{ round: number; files: File[] }>({ round: 0, files: [] });
  const [groups, setGroups] = useState<Group[]>();
  const choose = (files: File[]) => setChosen(({ round }) => ({ round: round + 1, files }));
  const dropped = droppedFiles.value;
  useEffect(() => {
    if (dropped.length === 0) return;
    choose(dropped);
    droppedFiles.value = [];
  }, [dropped]);
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
  return (
    <Page title={heading} heading={heading}>
      {refused !== undefined && <Note tone="bad">{refused}.</Note>}
      {starting ? (
        <SourceStep onFiles={choose} />
      ) : chosen.files.length > 0 && !groups ? (
        <Skeleton lines={12} />
      ) : (
        <Wizard
          key={chosen.round}
          groups={chosen.files.length > 0 ? (groups ?? []) : []}
          lakeKey={chosen.files.length > 0 ? undefined : key}
          target={target}
          onOther={start}
        />
      )}
    </Page>
  );
}
