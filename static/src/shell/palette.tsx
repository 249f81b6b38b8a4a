import { useQueries, useQuery } from "@tanstack/preact-query";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { dashboardsQuery, pipelinesQuery, savedQueriesQuery, tablesQuery } from "../api/queries";
import { useTitles } from "../boards/titles";
import { commands, referredPipelines, type Action, type Command, type PipelineContents } from "./commands";
import { isStrings, persisted } from "../browser/persisted";
import { useBack } from "../browser/unsaved";
import { ranked } from "./rank";
import "./palette.css";

const SHOWN_MAX = 50;
const RECENT_MAX = 20;
/** Maximum number of pipelines whose contents are loaded. */
const CONTENTS_MAX = 4;

const recent = persisted<string[]>("palette.recent", [], isStrings);

function used(id: string): void {
  recent.value = [id, ...recent.value.filter((other) => other !== id)].slice(0, RECENT_MAX);
}

/** Contents of the pipelines that the input refers to. */
function usePipelineContents(slugs: string[]): PipelineContents[] {
  const tables = useQueries({ queries: slugs.map((slug) => tablesQuery(slug)) });
  const dashboards = useQueries({ queries: slugs.map((slug) => dashboardsQuery(slug)) });
  const queries = useQueries({ queries: slugs.map((slug) => savedQueriesQuery(slug)) });
  const titled = useTitles(slugs.map((slug, at) => ({ slug, dashboards: dashboards[at]?.data?.dashboards ?? [] })));
  return slugs.map((slug, at) => ({
    slug,
    tables: tables[at]?.data?.tables ?? [],
    dashboards: titled[at] ?? [],
    queries: queries[at]?.data?.queries ?? [],
  }));
}

function useMatchingCommands(text: string, here: string | undefined): Command[] {
  const { data } = useQuery(pipelinesQuery());
  const pipelines = useMemo(() => data?.pipelines ?? [], [data]);
  const slugs = useMemo(() => {
    const named = pipelines.map(({ slug, title }) => ({ id: slug, label: slug, also: title ?? "" }));
    const words = text.trim().split(/\s+/).filter(Boolean);
    const wanted = words.flatMap((word) => ranked(named, word, [], 2).map(({ id }) => id));
    return referredPipelines(
      pipelines.length <= CONTENTS_MAX ? named.map(({ id }) => id) : [],
      here,
      wanted,
      CONTENTS_MAX,
    );
  }, [pipelines, here, text]);
  const inside = usePipelineContents(slugs);
  return ranked(commands(pipelines, inside, here), text, recent.value, SHOWN_MAX);
}

interface Props {
  /** The open pipeline. */
  here: string | undefined;
  onClose: () => void;
  onAct: (action: Action) => void;
}

/** Command palette: fuzzy search over pages and actions. */
export function Palette({ here, onClose, onAct }: Props) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [, go] = useLocation();
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const id = useId();
  const found = useMatchingCommands(text, here);
  const chosen = Math.min(at, found.length - 1);
  useBack(onClose);

  // Before the next event, so that the palette receives keys pressed at once.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const node = dialog.current;
    if (node && !node.open) node.showModal();
    node?.querySelector("input")?.focus();
    return () => {
      node?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen]);

  const choose = (command: Command | undefined) => {
    if (!command) return;
    used(command.id);
    onClose();
    if ("go" in command.does) go(command.does.go);
    else onAct(command.does.act);
  };
  const key = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
    const step = steps[event.key];
    if (step !== undefined && found.length > 0) {
      const to = chosen + step;
      const single = Math.abs(step) === 1;
      setAt(single ? (to + found.length) % found.length : Math.max(0, Math.min(found.length - 1, to)));
    } else if (event.key === "Enter" && !event.isComposing) choose(found[chosen]);
    else if ((event.ctrlKey || event.metaKey) && event.key === "k") onClose();
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Commands"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <input
        class="palette-input"
        type="text"
        role="combobox"
        aria-label="Search pages and actions"
        aria-expanded="true"
        aria-autocomplete="list"
        aria-controls={`${id}-list`}
        aria-activedescendant={found[chosen] ? `${id}-${chosen}` : undefined}
        placeholder="Search pipelines, tables, actions…"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={key}
      />
      <ul ref={list} id={`${id}-list`} class="palette-list" role="listbox" aria-label="Results">
        {found.map((command, index) => (
          <li
            key={command.id}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            onMouseMove={() => index !== chosen && setAt(index)}
            onClick={() => choose(command)}
          >
            <span class="cut">{command.label}</span>
            <span class="palette-kind cut">{command.kind}</span>
          </li>
        ))}
      </ul>
      <p class="palette-none" role="status">
        {found.length === 0 ? "No results." : ""}
      </p>
    </dialog>
  );
}
