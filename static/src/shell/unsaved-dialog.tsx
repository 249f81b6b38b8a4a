import { Confirm } from "../components/dialog";
import { areKept, leaving, unsavedNames } from "../browser/unsaved";

/** Asks before unsaved work is left, or a dialog with it is closed. */
export function UnsavedDialog() {
  const asked = leaving.value;
  if (!asked) return null;
  const { go, only } = asked;
  const stay = () => (leaving.value = undefined);
  return (
    <Confirm
      title={only === undefined ? "Leave without saving" : "Discard changes"}
      action={only === undefined ? "Leave" : "Discard"}
      danger
      onClose={stay}
      onConfirm={() => {
        stay();
        go();
      }}
    >
      <p>
        {only === undefined && areKept()
          ? "Not saved yet. This browser keeps the changes until you come back:"
          : "Unsaved changes will be lost:"}
      </p>
      <ul class="leaving-list">
        {(only === undefined ? unsavedNames.value : [only]).map((name) => (
          <li key={name}>{name}</li>
        ))}
      </ul>
    </Confirm>
  );
}
