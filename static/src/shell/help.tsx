import { Dialog } from "../components/dialog";
import { activeShortcuts, printed } from "./shortcuts";

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Help" kind="drawer" onClose={onClose}>
      <dl>
        {activeShortcuts().map(({ keys, does }) => (
          <div key={keys} class="row">
            <dt>
              {printed(keys).map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
