import { useSignal } from "@preact/signals";
import { useQueryClient } from "@tanstack/preact-query";
import { useEffect } from "preact/hooks";
import { isConflict, keepSettings, saveSettings, type Conflict, type Tagged } from "../../api/settings";
import type { Settings } from "../../api/types";
import { Button } from "../../components/button";
import { TextField } from "../../components/field";
import { Section } from "../../components/page";
import { Note } from "../../components/states";
import { toast } from "../../components/toasts";
import { isString, persisted } from "../../browser/persisted";
import { useShortcuts } from "../../browser/shortcuts";
import { useUnsaved } from "../../browser/unsaved";

/** As in the service. */
const NAME_CHARS_MAX = 100;
const WORDS: Record<keyof Settings, string> = {
  workspace_name: "the workspace name",
  display_name: "your name",
  starred: "the stars",
};

/** Unsaved input as `{"workspace_name": …}`; survives a reload. */
const draft = persisted("settings.draft", "", isString);

type Typed = Partial<Pick<Settings, "workspace_name" | "display_name">>;

function typedOf(text: string): Typed {
  try {
    const { workspace_name, display_name } = JSON.parse(text || "{}") as Record<string, unknown>;
    return {
      ...(typeof workspace_name === "string" ? { workspace_name } : {}),
      ...(typeof display_name === "string" ? { display_name } : {}),
    };
  } catch {
    return {};
  }
}

/** Names of workspace and user. */
export function Names({ stored }: { stored: Tagged }) {
  const cache = useQueryClient();
  const busy = useSignal(false);
  const conflict = useSignal<Conflict | undefined>(undefined);
  const savedText = useSignal("");
  /** The settings that editing started from, independent of later responses. */
  const base = useSignal(stored);
  const typed = typedOf(draft.value);
  const now = { ...stored.settings, ...typed };
  const dirty =
    now.workspace_name !== stored.settings.workspace_name || now.display_name !== stored.settings.display_name;
  useUnsaved("the names in Settings", dirty);
  useEffect(() => {
    if (!dirty) base.value = stored;
  }, [dirty, stored, base]);

  const type = (change: Typed) => {
    savedText.value = "";
    draft.value = JSON.stringify({ ...typedOf(draft.value), ...change });
  };
  const save = async (from: Tagged) => {
    if (busy.value || !dirty) return;
    busy.value = true;
    try {
      const asked = { ...from.settings, ...typed };
      const answer = await saveSettings(cache, from, asked);
      conflict.value = isConflict(answer) ? answer : undefined;
      if (isConflict(answer)) return;
      base.value = answer;
      // Keeps newer input.
      const since = Object.entries(typedOf(draft.value)).filter(([name, text]) => asked[name as keyof Typed] !== text);
      draft.value = since.length > 0 ? JSON.stringify(Object.fromEntries(since)) : "";
      const { workspace_name, display_name } = answer.settings;
      const changed = workspace_name !== asked.workspace_name || display_name !== asked.display_name;
      savedText.value = changed ? "Saved. Invisible characters were removed." : "Saved.";
    } catch (error) {
      toast.failed("Couldn't save the settings", error);
    } finally {
      busy.value = false;
    }
  };
  useShortcuts([{ keys: "mod+s", does: "Save names", run: () => void save(base.value) }]);
  return (
    <Section title="Names">
      <form
        class="card stack"
        onSubmit={(event) => {
          event.preventDefault();
          void save(base.value);
        }}
      >
        <TextField
          label="Workspace"
          hint="Shown to everyone in the sidebar and page titles."
          maxLength={NAME_CHARS_MAX}
          value={now.workspace_name}
          onInput={(event) => type({ workspace_name: event.currentTarget.value })}
        />
        <TextField
          label="Your name"
          maxLength={NAME_CHARS_MAX}
          value={now.display_name}
          onInput={(event) => type({ display_name: event.currentTarget.value })}
        />
        {conflict.value && (
          <ConflictNote
            conflict={conflict.value}
            onMine={() => {
              const { theirs } = conflict.value ?? { theirs: stored };
              base.value = theirs;
              void save(theirs);
            }}
            onTheirs={() => {
              const theirs = conflict.value?.theirs;
              draft.value = "";
              conflict.value = undefined;
              if (theirs) keepSettings(cache, theirs);
            }}
          />
        )}
        <div class="row">
          <Button type="submit" variant="primary" busy={busy.value} disabled={!dirty}>
            Save
          </Button>
          {dirty && (
            <Button variant="quiet" onClick={() => (draft.value = "")}>
              Discard changes
            </Button>
          )}
          <span role="status" class="secondary">
            {savedText.value}
          </span>
        </div>
      </form>
    </Section>
  );
}

function ConflictNote({
  conflict,
  onMine,
  onTheirs,
}: {
  conflict: Conflict;
  onMine: () => void;
  onTheirs: () => void;
}) {
  const { theirs, fields } = conflict;
  return (
    <Note tone="warn">
      <div class="stack">
        <p>
          Someone else changed {fields.map((field) => WORDS[field]).join(" and ")} to{" "}
          {fields.map((field, at) => (
            <span key={field}>
              {at > 0 && " and "}
              <strong>{String(theirs.settings[field]) || "nothing"}</strong>
            </span>
          ))}
          . Your changes aren't saved yet.
        </p>
        <div class="row wrap">
          <Button onClick={onMine}>Save mine</Button>
          <Button onClick={onTheirs}>Take theirs</Button>
        </div>
      </div>
    </Note>
  );
}
