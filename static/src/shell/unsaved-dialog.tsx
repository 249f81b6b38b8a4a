import { Confirm } from "../components/dialog";
import { leaving, unsavedNames } from "../browser/unsaved";

/** Asks before unsaved work is left. */
export function UnsavedDialog() {
  const go = leaving.value;
  if (!go) return null;
  const stay = () => (leaving.value = undefined);
  return (
    <Confirm
      title="Leave without saving"
      action="Leave"
      danger
      onClose={stay}
      onConfirm={() => {
        stay();
        go();
      }}
    >
      <p>Unsaved changes will be lost:</p>
      <ul class="leaving-list">
        {unsavedNames.value.map((name) => (
          <li key={name}>{name}</li>
        ))}
      </ul>
    </Confirm>
  );
}
