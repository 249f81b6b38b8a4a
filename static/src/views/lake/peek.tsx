import { useQuery } from "@tanstack/preact-query";
import { Download, FilePlus2 } from "lucide-preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { api, ask } from "../../api/client";
import { Dialog } from "../../components/dialog";
import { Grid, rowsInMemory } from "../../components/grid";
import { Failed, Note, Skeleton } from "../../components/states";
import { count } from "../../format/number";
import { routes } from "../../browser/routes";
import { nameOf, pipelineOf } from "../../uploads/keys";
import { PIECE, useLines, type Lines } from "./lines";
import { sniff, split } from "../../format/delimited";
import { useWindow } from "./window";

const LINE_PX = 20;

interface Props {
  file: string;
  /** Highlighted line, counted from 1. */
  line: number | undefined;
  onClose: () => void;
}

type Tab = "text" | "table";

/** File preview: lines as text, and the first lines as a table. */
export function Peek({ file, line, onClose }: Props) {
  const [tab, setTab] = useState<Tab>("text");
  const [lines, need, retry] = useLines(file, line ?? 1);
  const slug = pipelineOf(file);
  const name = nameOf(file);
  useEffect(() => need(0, PIECE), [need, tab]);
  return (
    <Dialog title={name} kind="drawer" inUrl onClose={onClose}>
      <div class="lake-peek">
        <p class="secondary">
          <code>{file}</code>
          {lines.encoding && ` · ${lines.encoding}`}
          {lines.whole && ` · ${count(lines.total)} lines`}
        </p>
        <div class="row wrap">
          <a class="button" href={`/api/lake/object?key=${encodeURIComponent(file)}`} download={name}>
            <Download />
            Download
          </a>
          <Link class="button" href={routes.fromCsv({ key: file })}>
            <FilePlus2 />
            New pipeline from this file
          </Link>
          {slug && (
            <Link class="button" href={routes.config(slug)}>
              Config of {slug}
            </Link>
          )}
        </div>
        <div class="row" role="tablist" aria-label="Display as">
          {(["text", "table"] as const).map((one) => (
            <button
              key={one}
              type="button"
              role="tab"
              class={one === tab ? "button lake-tab chosen" : "button quiet lake-tab"}
              aria-selected={one === tab}
              onClick={() => setTab(one)}
            >
              {one === "text" ? "Text" : "Table"}
            </button>
          ))}
        </div>
        {lines.error ? (
          <Failed title={`Couldn't load ${name}`} error={lines.error} onRetry={retry} />
        ) : tab === "text" ? (
          <Text lines={lines} need={need} line={line} />
        ) : (
          <AsTable file={file} lines={lines} />
        )}
      </div>
    </Dialog>
  );
}

function Text({
  lines,
  need,
  line,
}: {
  lines: Lines;
  need: (first: number, end: number) => void;
  line: number | undefined;
}) {
  const { box, onScroll, reveal, height, first, end, shift, space } = useWindow(lines.total, LINE_PX);
  const shown = useRef(false);
  useLayoutEffect(() => {
    // Hidden boxes don't scroll.
    if (shown.current || line === undefined || height === 0) return;
    shown.current = true;
    reveal(line - 1, true);
  });
  useEffect(() => need(first, end), [need, first, end]);
  if (lines.whole && lines.total === 0) return <Note>The file is empty.</Note>;
  const digits = String(lines.total).length;
  return (
    <>
      {lines.beyond && <Note tone="warn">The preview ends here. Download the file to see the rest.</Note>}
      <div ref={box} class="lake-text" tabIndex={0} role="region" aria-label="Lines" onScroll={onScroll}>
        <div class="lake-space" style={{ height: `${space}px` }}>
          {Array.from({ length: Math.max(0, end - first) }, (_, at) => {
            const number = first + at;
            const text = lines.get(number);
            return (
              <div
                key={number}
                class={number + 1 === line ? "lake-line marked" : "lake-line"}
                style={{ top: `${number * LINE_PX + shift}px` }}
                aria-current={number + 1 === line ? "true" : undefined}
              >
                <span class="lake-number" style={{ width: `${digits + 2}ch` }}>
                  {number + 1}
                </span>
                <span class="lake-content">
                  {text}
                  {lines.isCut(number) && <span class="dim"> … truncated after 4,096 characters</span>}
                </span>
              </div>
            );
          })}
        </div>
      </div>
    </>
  );
}

/** The first lines, split with the service's proposal or else the best-fitting delimiter. */
function AsTable({ file, lines }: { file: string; lines: Lines }) {
  const slug = pipelineOf(file);
  const proposed = useQuery({
    queryKey: ["lake", "infer", file],
    queryFn: ({ signal }) =>
      ask(
        api.POST("/api/p/{pipeline}/infer", {
          params: { path: { pipeline: slug ?? "" }, query: { key: file } },
          signal,
        }),
      ),
    enabled: slug !== undefined,
    retry: false,
    staleTime: 60_000,
  });
  const texts: string[] = [];
  for (let at = 0; at < PIECE; at += 1) {
    const text = lines.get(at);
    if (text === undefined) break;
    texts.push(text);
  }
  if (texts.length === 0 || (slug !== undefined && proposed.isPending)) return <Skeleton lines={10} />;
  const csv = proposed.data?.csv_full;
  const body = texts.slice(csv?.skip_rows ?? 0).join("\n");
  const delimiter = csv?.delimiter ?? sniff(body);
  const rows = split(body, delimiter, csv ? csv.quote : '"');
  const headed = csv?.header ?? true;
  const width = Math.max(...rows.map((row) => row.length));
  const head = headed ? (rows[0] ?? []) : [];
  const columns = Array.from({ length: width }, (_, at) => ({ name: head[at] ?? `column ${at + 1}`, type: "string" }));
  return (
    <div class="lake-table">
      <Grid label="First lines as a table" columns={columns} rows={rowsInMemory(headed ? rows.slice(1) : rows)} />
    </div>
  );
}
