import { Confirm } from "../components/dialog";
import { leaving, unsavedNames } from "../browser/unsaved";

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
      <p>Unsaved changes will be lost:</p>
      <ul class="leaving-list">
        {(only === undefined ? unsavedNames.value : [only]).map((name) => (
          <li key={name}>{name}</li>
        ))}
      </ul>
    </Confirm>
  );
}
