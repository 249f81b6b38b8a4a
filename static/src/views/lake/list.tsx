import { File as FileIcon, FileSpreadsheet, Folder } from "lucide-preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Link } from "wouter-preact";
import { Time } from "../../components/time";
import { bytes } from "../../format/number";
import { FROM_LIST, routes } from "../../browser/routes";
import { nameOf } from "../../uploads/keys";
import { isSource } from "../../uploads/source-names";
import { only, withRange, withStep, withToggled, type Selection } from "./selection";
import type { Entry } from "../../uploads/entries";
import { FileState } from "./state";
import { useWindow } from "./window";

const ROW_PX = 36;
/** Rows before the end at which the next page is loaded. */
const PRELOAD_ROWS = 100;
const PAGE_ROWS = 15;

interface Props {
  prefix: string;
  entries: Entry[];
  choice: Selection;
  more: boolean;
  onChoice: (choice: Selection) => void;
  onMore: () => void;
  onOpen: (entry: Entry) => void;
  onUp: () => void;
  onDelete: () => void;
}

/** Virtualized list of folders and files. */
export function List(props: Props) {
  const { prefix, entries, choice, more, onChoice, onMore } = props;
  const { box, onScroll, reveal, first, end, shift, space } = useWindow(entries.length, ROW_PX);
  const order = entries.map(({ key }) => key);
  useEffect(() => {
    if (more && end > entries.length - PRELOAD_ROWS) onMore();
  }, [more, end, entries.length, onMore]);
  useEffect(() => {
    box.current?.scrollTo({ top: 0 });
  }, [prefix, box]);

  // The header's columns are those of the rows, which end at the scrollbar.
  const head = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const { offsetWidth = 0, clientWidth = 0 } = box.current ?? {};
    head.current?.style.setProperty("--lake-scrollbar", `${String(offsetWidth - clientWidth)}px`);
  });

  const move = (by: number, extend: boolean) => {
    const next = withStep(choice, by, order, extend);
    onChoice(next);
    if (next.cursor !== undefined) reveal(order.indexOf(next.cursor));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const open = entries.find(({ key }) => key === choice.cursor);
    const keys: Record<string, () => void> = {
      ArrowDown: () => move(1, event.shiftKey),
      ArrowUp: () => move(-1, event.shiftKey),
      PageDown: () => move(PAGE_ROWS, event.shiftKey),
      PageUp: () => move(-PAGE_ROWS, event.shiftKey),
      Home: () => move(-order.length, event.shiftKey),
      End: () => move(order.length, event.shiftKey),
      " ": () => choice.cursor !== undefined && onChoice(withToggled(choice, choice.cursor)),
      Backspace: props.onUp,
      Delete: props.onDelete,
    };
    // Links handle Enter themselves.
    if (open && event.target === box.current) keys.Enter = () => props.onOpen(open);
    if ((event.ctrlKey || event.metaKey) && event.key === "a")
      keys.a = () => onChoice({ chosen: new Set(order), cursor: choice.cursor, anchor: order[0] });
    const run = keys[event.key];
    if (!run || event.altKey) return;
    event.preventDefault();
    run();
  };
  const all = order.length > 0 && choice.chosen.size === order.length;
  return (
    <div
      class="lake-list"
      role="grid"
      aria-label="Folders and files"
      aria-multiselectable="true"
      aria-rowcount={more ? -1 : order.length + 1}
    >
      <div class="lake-head" role="row" ref={head}>
        <span role="columnheader">
          <input
            type="checkbox"
            aria-label="Select all"
            checked={all}
            onChange={() => onChoice(all ? { ...choice, chosen: new Set() } : { ...choice, chosen: new Set(order) })}
          />
        </span>
        <span role="columnheader">Name</span>
        <span role="columnheader" class="num">
          Size
        </span>
        <span role="columnheader" class="lake-time">
          {" "}
          Modified{" "}
        </span>
        <span role="columnheader" class="lake-details">
          {" "}
          Status{" "}
        </span>
      </div>
      <div
        ref={box}
        class="lake-rows"
        role="rowgroup"
        tabIndex={0}
        aria-label="Entries"
        aria-activedescendant={choice.cursor === undefined ? undefined : rowId(order.indexOf(choice.cursor))}
        onScroll={onScroll}
        onKeyDown={onKeyDown}
      >
        <div class="lake-space" role="presentation" style={{ height: `${space}px` }}>
          {entries.slice(first, end).map((entry, at) => (
            <EntryRow
              key={entry.key}
              entry={entry}
              at={first + at}
              shift={shift}
              prefix={prefix}
              chosen={choice.chosen.has(entry.key)}
              cursor={choice.cursor === entry.key}
              onOpen={() => props.onOpen(entry)}
              onChoose={(event) => {
                if (event.shiftKey) onChoice(withRange(choice, entry.key, order));
                else if (event.ctrlKey || event.metaKey) onChoice(withToggled(choice, entry.key));
                else onChoice(only(entry.key));
                box.current?.focus({ preventScroll: true });
              }}
              onToggle={() => onChoice(withToggled(choice, entry.key))}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

const rowId = (at: number): string => `lake-row-${at}`;

interface Target {
  href: string;
  state?: object;
}

/** Where an entry leads that is opened from the list of `prefix`. */
export const targetOf = (prefix: string, { kind, key }: Entry): Target =>
  kind === "folder" ? { href: routes.lake(key) } : { href: routes.lake(prefix, { file: key }), state: FROM_LIST };

interface RowProps {
  entry: Entry;
  at: number;
  shift: number;
  prefix: string;
  chosen: boolean;
  cursor: boolean;
  onOpen: () => void;
  onChoose: (event: MouseEvent) => void;
  onToggle: () => void;
}

function EntryRow({ entry, at, shift, prefix, chosen, cursor, onOpen, onChoose, onToggle }: RowProps) {
  const folder = entry.kind === "folder";
  const Icon = folder ? Folder : isSource(nameOf(entry.key)) ? FileSpreadsheet : FileIcon;
  return (
    <div
      id={rowId(at)}
      class={`lake-row ${chosen ? "chosen" : ""} ${cursor ? "cursor" : ""}`}
      role="row"
      aria-rowindex={at + 2}
      aria-selected={chosen}
      style={{ top: `${at * ROW_PX + shift}px` }}
      onClick={(event) => {
        if (!(event.target instanceof Element && event.target.closest("a, input"))) onChoose(event);
      }}
      onDblClick={onOpen}
    >
      <span role="gridcell">
        <input type="checkbox" tabIndex={-1} aria-label={`Select ${entry.name}`} checked={chosen} onChange={onToggle} />
      </span>
      <span role="gridcell" class="lake-name">
        <Icon aria-hidden="true" />
        <Link {...targetOf(prefix, entry)} class="cut" title={entry.key} tabIndex={-1}>
          {folder ? `${entry.name}/` : entry.name}
        </Link>
      </span>
      <span role="gridcell" class="num">
        {folder ? "" : bytes(entry.file.size)}
      </span>
      <span role="gridcell" class="lake-time secondary">
        {!folder && <Time at={entry.file.modified} />}
      </span>
      <span role="gridcell" class="lake-details">
        {!folder && <FileState file={entry.file} />}
      </span>
    </div>
  );
}
