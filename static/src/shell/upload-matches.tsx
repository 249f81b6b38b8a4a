import { SelectField } from "../components/field";
import { Note } from "../components/states";
import { Time } from "../components/time";
import { bytes, counted } from "../format/number";
import { namesOf } from "../uploads/keys";
import type { Choice, Match } from "../uploads/stored";

interface Props {
  table: string;
  matches: readonly Match[];
  choiceOf: (match: Match) => Choice;
  onChoice: (matches: readonly Match[], choice: Choice) => void;
}

/** What becomes of stored files that new files are like; people choose. */
export function UploadMatches({ table, matches, choiceOf, onChoice }: Props) {
  const same = matches.filter(({ kind, identical }) => kind === "same" && identical === undefined);
  const stored = matches.filter(({ kind, identical }) => kind === "same" && identical !== undefined);
  return (
    <>
      {stored.length > 0 && (
        <Note>
          {namesOf(stored.map(({ file }) => file.name))} {stored.length === 1 ? "exists" : "exist"} already with the
          same content, and {stored.length === 1 ? "isn't" : "aren't"} uploaded again.
        </Note>
      )}
      {same.length > 0 && <Existing same={same} choice={choiceOf(same[0] as Match)} onChoice={onChoice} />}
      {matches
        .filter(({ kind }) => kind !== "same")
        .map((match) => (
          <Version
            key={match.file.name}
            table={table}
            match={match}
            choice={choiceOf(match)}
            onChoice={(choice) => onChoice([match], choice)}
          />
        ))}
    </>
  );
}

function Existing({ same, choice, onChoice }: { same: readonly Match[]; choice: Choice; onChoice: Props["onChoice"] }) {
  const stored = same.flatMap(({ targets }) => targets.flatMap((target) => target.stored));
  const newest = stored
    .map(({ modified }) => modified)
    .sort()
    .at(-1);
  const one = stored.length === 1;
  return (
    <>
      <Note tone="warn">
        {namesOf(same.map(({ file }) => file.name))} {one ? "exists" : "exist"} already:{" "}
        {bytes(stored.reduce((sum, { size }) => sum + size, 0))}, {one ? "uploaded" : "the newest uploaded"}{" "}
        <Time at={newest} />.
      </Note>
      <SelectField
        label={one ? "The existing file" : `The ${counted(stored.length, "existing file")}`}
        value={choice === "skip" ? "skip" : "replace"}
        hint={
          choice === "skip"
            ? `The stored ${one ? "file and its" : "files and their"} rows stay as they are.`
            : `The upload replaces ${one ? "it" : "them"}, and the next run replaces ${one ? "its" : "their"} rows.`
        }
        onChange={(event) => onChoice(same, event.currentTarget.value === "skip" ? "skip" : 0)}
      >
        <option value="replace">Replace {one ? "it" : "them"}</option>
        <option value="skip">
          Keep {one ? "it, and don't upload the new one" : "them, and don't upload the new ones"}
        </option>
      </SelectField>
    </>
  );
}

function Version({
  table,
  match: { file, kind, targets, identical, table: other },
  choice,
  onChoice,
}: {
  table: string;
  match: Match;
  choice: Choice;
  onChoice: (choice: Choice) => void;
}) {
  const names = namesOf(targets.map(({ name }) => name));
  const target = targets[typeof choice === "number" ? choice : 0];
  const replaces = target?.other
    ? `only ${file.name} is uploaded, without ${target.name}.`
    : "the new file takes its place, and the next run replaces its rows.";
  const adds = `${table} gets the rows of both, so those that are in both count twice.`;
  if (identical !== undefined)
    return (
      <SelectField
        label={
          other ? `${file.name} is already in table ${other}` : `${file.name} has the same content as ${identical}`
        }
        value={choice === "add" ? "add" : "skip"}
        hint={
          choice === "skip"
            ? "The rows are in the table already, or will be by the next run."
            : other === undefined && `${table} gets all rows twice.`
        }
        onChange={(event) => onChoice(event.currentTarget.value === "add" ? "add" : "skip")}
      >
        <option value="skip">Don&apos;t upload it</option>
        <option value="add">{other ? `Upload it to ${table}, too` : "Add as another file"}</option>
      </SelectField>
    );
  return (
    <SelectField
      label={
        kind === "version"
          ? `${file.name} looks like another version of ${names}`
          : `${file.name} begins with the columns and the rows or period of ${names}`
      }
      value={String(choice ?? "")}
      hint={`Replace: ${replaces} Add: ${adds}`}
      onChange={(event) => {
        const { value } = event.currentTarget;
        onChoice(value === "" ? undefined : value === "add" ? "add" : Number(value));
      }}
    >
      <option value="">Choose what to do</option>
      {targets.map(({ name }, at) => (
        <option key={name} value={at}>
          Replace {name}
        </option>
      ))}
      <option value="add">Add as another file</option>
    </SelectField>
  );
}
