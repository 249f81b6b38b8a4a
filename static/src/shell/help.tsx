import { useEffect, useState } from "preact/hooks";
import { Dialog } from "../components/dialog";
import { Skeleton } from "../components/states";
import { activeShortcuts, printed, type Shortcut } from "../browser/shortcuts";
import "./help.css";

interface HelpText {
  title: string;
  text: string[];
}

/** Help texts of the views, loaded on demand. */
const TEXTS = import.meta.glob<HelpText>("../views/*/help.ts", { import: "help" });

/** Folder of the view at a path. */
export function viewAt(path: string): string {
  const [first = "", , view] = path.split("/").filter(Boolean);
  if (first === "") return "pipelines";
  return first === "p" ? (view ?? "overview") : first;
}

const SCOPES = [
  { title: "In this view", is: (one: Shortcut) => one.scope === undefined },
  { title: "In this pipeline", is: (one: Shortcut) => one.scope === "pipeline" },
  { title: "Everywhere", is: (one: Shortcut) => one.scope === "everywhere" },
];

const IN_LISTS: Shortcut[] = [
  { keys: "Tab", does: "Move to the next element", scope: "everywhere" },
  { keys: "Escape", does: "Close the top dialog or menu", scope: "everywhere" },
];

/** Lists each key once, with its last registration. */
export function listed(shortcuts: Shortcut[]): { title: string; shortcuts: Shortcut[] }[] {
  const byKeys = new Map(shortcuts.map((one) => [one.keys, one]));
  const all = [...byKeys.values(), ...IN_LISTS.filter(({ keys }) => !byKeys.has(keys))];
  return SCOPES.map(({ title, is }) => ({ title, shortcuts: all.filter(is) })).filter(
    (one) => one.shortcuts.length > 0,
  );
}

/** Help panel: purpose of the view and its keys. */
export function Help({ path, onClose }: { path: string; onClose: () => void }) {
  const [text, setText] = useState<HelpText>();
  const load = TEXTS[`../views/${viewAt(path)}/help.ts`];
  useEffect(() => {
    void load?.().then(setText, () => undefined);
  }, [load]);
  return (
    <Dialog title={text ? `Help: ${text.title}` : "Help"} kind="drawer" onClose={onClose}>
      {text ? (
        <div class="stack">
          {text.text.map((line) => (
            <p key={line}>{line}</p>
          ))}
        </div>
      ) : (
        load && <Skeleton lines={3} />
      )}
      {listed(activeShortcuts()).map((group) => (
        <section key={group.title} class="help-keys">
          <h3>{group.title}</h3>
          <dl>
            {group.shortcuts.map(({ keys, does }) => (
              <div key={keys}>
                <dt>
                  {printed(keys).map((key) => (
                    <kbd key={key}>{key}</kbd>
                  ))}
                </dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </Dialog>
  );
}
