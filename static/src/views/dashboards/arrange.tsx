/** The grid of a dashboard that is edited: panels are moved and resized by pointer and keyboard. */
import { EllipsisVertical, GripVertical, Pencil } from "lucide-preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { DataAnswer } from "../../api/types";
import { IconButton } from "../../components/button";
import { Menu } from "../../components/menu";
import type { DashboardDoc, Panel } from "./document";
import { type Drop, dropAt, HEIGHT_STEP_PX, moveTarget, reordered, resized, type Size, WIDE_PX } from "./arrange-logic";
import { HEIGHTS, PanelFrame } from "./panel-frame";
import { placementsOf } from "./placement";
import "./arrange.css";

export interface Arrange {
  onMove: (id: string, to: number) => void;
  onResize: (id: string, size: Partial<Size>) => void;
  onEdit: (panel: Panel) => void;
  onCopy: (id: string) => void;
  onRemove: (panel: Panel) => void;
  onYaml: (id: string) => void;
  /** A panel to show and mark, e.g. one that was just added. */
  marked: string | undefined;
}

interface Props {
  slug: string;
  document: DashboardDoc;
  answer: DataAnswer | undefined;
  busy: boolean;
  pending: boolean;
  arrange: Arrange;
}

const heightOf = (panel: Panel): number => panel.height ?? HEIGHTS[panel.type];
const nameOf = (panel: Panel): string => panel.title || panel.id;

export function ArrangedGrid({ slug, document, answer, busy, pending, arrange }: Props) {
  const { panels } = document;
  const grid = useRef<HTMLDivElement>(null);
  const [dragged, setDragged] = useState<string>();
  const [drop, setDrop] = useState<Drop>();
  const [size, setSize] = useState<Size & { id: string }>();
  const [announcement, setAnnouncement] = useState("");
  const refocus = useRef<string>();
  const places = placementsOf(
    size ? panels.map((panel) => (panel.id === size.id ? { ...panel, width: size.width } : panel)) : panels,
  );
  // While a panel is dragged, the grid shows where it would be.
  const order = reordered(
    panels.map(({ id }) => id),
    dragged ?? "",
    drop,
  );
  const find = (id: string) => grid.current?.querySelector<HTMLElement>(`[data-panel="${CSS.escape(id)}"]`);

  // A moved element loses the focus.
  useEffect(() => {
    if (refocus.current === undefined) return;
    find(refocus.current)?.querySelector<HTMLElement>(".dash-handle")?.focus();
    refocus.current = undefined;
  }, [panels]);
  useEffect(() => {
    if (arrange.marked === undefined) return;
    find(arrange.marked)?.scrollIntoView({ block: "center" });
  }, [arrange.marked, panels.length]);

  const move = (id: string, to: number) => {
    const from = panels.findIndex((panel) => panel.id === id);
    const panel = panels[from];
    if (!panel || to === from || to < 0 || to >= panels.length) return;
    setAnnouncement(`${nameOf(panel)} moved to position ${to + 1} of ${panels.length}`);
    arrange.onMove(id, to);
  };

  const startMove = (event: PointerEvent & { currentTarget: HTMLElement }, id: string) => {
    if (event.button !== 0) return;
    const handle = event.currentTarget;
    handle.setPointerCapture(event.pointerId);
    let at: Drop | undefined;
    // Places before the drag: those that are shown change with each target, which must not change the target.
    const start = grid.current?.getBoundingClientRect();
    const boxes = panels.flatMap((panel) => {
      const box = find(panel.id)?.getBoundingClientRect();
      return box ? [{ id: panel.id, box }] : [];
    });
    const onMove = ({ clientX, clientY }: PointerEvent) => {
      setDragged(id);
      scrollNear(handle, clientY);
      const now = grid.current?.getBoundingClientRect();
      const scrolled = { x: (now?.left ?? 0) - (start?.left ?? 0), y: (now?.top ?? 0) - (start?.top ?? 0) };
      at = dropAt(boxes, { x: clientX - scrolled.x, y: clientY - scrolled.y }, id, start?.width ?? 0);
      setDrop(at);
    };
    const onEnd = (ended: PointerEvent) => {
      handle.removeEventListener("pointermove", onMove);
      handle.removeEventListener("pointerup", onEnd);
      handle.removeEventListener("pointercancel", onEnd);
      setDragged(undefined);
      setDrop(undefined);
      if (ended.type === "pointerup" && at)
        move(
          id,
          moveTarget(
            panels.map((panel) => panel.id),
            id,
            at,
          ),
        );
    };
    handle.addEventListener("pointermove", onMove);
    handle.addEventListener("pointerup", onEnd);
    handle.addEventListener("pointercancel", onEnd);
  };

  const startResize = (event: PointerEvent & { currentTarget: HTMLElement }, panel: Panel) => {
    if (event.button !== 0) return;
    const handle = event.currentTarget;
    const [box, width] = [find(panel.id)?.getBoundingClientRect(), grid.current?.clientWidth ?? 0];
    if (!box) return;
    event.preventDefault();
    handle.setPointerCapture(event.pointerId);
    const start = { x: event.clientX, y: event.clientY };
    let now: Size = { width: panel.width, height: heightOf(panel) };
    const onMove = ({ clientX, clientY }: PointerEvent) => {
      now = resized(
        { width: panel.width, height: heightOf(panel) },
        { x: clientX - start.x, y: clientY - start.y },
        width,
      );
      setSize({ id: panel.id, ...now });
    };
    const onEnd = (ended: PointerEvent) => {
      handle.removeEventListener("pointermove", onMove);
      handle.removeEventListener("pointerup", onEnd);
      handle.removeEventListener("pointercancel", onEnd);
      setSize(undefined);
      if (ended.type === "pointerup") resize(panel, now);
    };
    handle.addEventListener("pointermove", onMove);
    handle.addEventListener("pointerup", onEnd);
    handle.addEventListener("pointercancel", onEnd);
  };

  const resize = (panel: Panel, next: Size) => {
    const change: Partial<Size> = {
      ...(next.width === panel.width ? {} : { width: next.width }),
      ...(next.height === heightOf(panel) ? {} : { height: next.height }),
    };
    if (Object.keys(change).length === 0) return;
    setAnnouncement(`${nameOf(panel)}: ${next.width} of 12 columns, ${next.height} pixels high`);
    arrange.onResize(panel.id, change);
  };

  const moveKey = (event: KeyboardEvent, id: string) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    refocus.current = id;
    move(id, panels.findIndex((panel) => panel.id === id) + step);
  };

  const resizeKey = (event: KeyboardEvent, panel: Panel) => {
    const steps: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -HEIGHT_STEP_PX],
      ArrowDown: [0, HEIGHT_STEP_PX],
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const [columns, px] = step;
    const next = resized({ width: panel.width, height: heightOf(panel) }, { x: 0, y: px }, 0);
    resize(panel, { ...next, width: Math.min(12, Math.max(1, panel.width + columns)) });
  };

  return (
    <>
      <div class="dash-grid arranged" ref={grid} data-dragging={dragged !== undefined ? "" : undefined}>
        {panels.map((panel) => {
          const name = nameOf(panel);
          const shown = size?.id === panel.id ? { ...panel, width: size.width, height: size.height } : panel;
          const place = places.get(panel.id) ?? { span: panel.width, half: false };
          return (
            <PanelFrame
              key={panel.id}
              slug={slug}
              document={document}
              panel={shown}
              place={dragged === undefined ? place : { ...place, order: order.indexOf(panel.id) }}
              answer={answer}
              busy={busy}
              pending={pending}
              look={`${dragged === panel.id ? "dragged" : ""} ${arrange.marked === panel.id ? "marked" : ""}`}
              tools={{
                start: (
                  <button
                    type="button"
                    class="dash-handle"
                    aria-label={`Move ${name}`}
                    title="Drag, or use the arrow keys, to move"
                    aria-keyshortcuts="ArrowLeft ArrowRight"
                    onPointerDown={(event) => startMove(event, panel.id)}
                    onKeyDown={(event) => moveKey(event, panel.id)}
                  >
                    <GripVertical aria-hidden="true" />
                  </button>
                ),
                end: (
                  <>
                    <IconButton label={`Edit ${name}`} icon={<Pencil />} onClick={() => arrange.onEdit(panel)} />
                    <Menu
                      label={`More actions for ${name}`}
                      button={<EllipsisVertical />}
                      class="icon-only"
                      items={[
                        { label: "Duplicate", onSelect: () => arrange.onCopy(panel.id) },
                        { label: "Show in YAML", onSelect: () => arrange.onYaml(panel.id) },
                        { label: "Remove", danger: true, onSelect: () => arrange.onRemove(panel) },
                      ]}
                    />
                  </>
                ),
                corner: (
                  <button
                    type="button"
                    class="dash-resize"
                    aria-label={`Resize ${name}`}
                    title={`${shown.width} of 12 columns, ${heightOf(shown)} px high. Drag, or use the arrow keys, to resize`}
                    aria-keyshortcuts="ArrowLeft ArrowRight ArrowUp ArrowDown"
                    onPointerDown={(event) => startResize(event, panel)}
                    onKeyDown={(event) => resizeKey(event, panel)}
                  />
                ),
              }}
            />
          );
        })}
      </div>
      <p class="for-readers" role="status">
        {announcement}
      </p>
    </>
  );
}

/** Scrolls when the pointer is near an edge of what scrolls. */
function scrollNear(node: HTMLElement, y: number): void {
  const scroller = node.closest<HTMLElement>(".dash-preview");
  if (!scroller) return;
  const box = scroller.getBoundingClientRect();
  const edge = 48;
  if (y < box.top + edge) scroller.scrollBy(0, -16);
  else if (y > box.bottom - edge) scroller.scrollBy(0, 16);
}

export { WIDE_PX };
