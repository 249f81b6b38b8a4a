/** The page's upload queue, which continues across views. */
import { effect } from "@preact/signals";
import { connection } from "../api/connection";
import { client, keys } from "../api/queries";
import { session } from "../api/session";
import { hasFiles } from "./files";
import { pipelineOf } from "./keys";
import { UploadQueue } from "./queue";
import { overHttp } from "./transport";

/** Doesn't spend attempts while the service or its store is known to fail. */
const ready = (): boolean => session.state.value === "in" && connection.state.value === "ok";

export const uploads = new UploadQueue(overHttp, {
  now: () => performance.now(),
  later: (ms, run) => void setTimeout(run, ms),
  ready,
  onEnded: (batch) => {
    void client.invalidateQueries({ queryKey: ["lake"] });
    void client.invalidateQueries({ queryKey: keys.pipelines });
    const slugs = new Set(batch.uploads.map(({ key }) => pipelineOf(key)));
    for (const slug of slugs) if (slug) void client.invalidateQueries({ queryKey: keys.pipeline(slug) });
  },
});

effect(() => {
  if (ready()) uploads.work();
});

/** Elements that accept dropped files themselves. */
const TAKES_FILES = 'input[type="file"], [contenteditable="true"]';

/** Prevents the browser from opening a file that is dropped outside a drop zone. */
function preventStrayDrop(event: DragEvent): void {
  if (event.defaultPrevented || !event.dataTransfer || !hasFiles(event.dataTransfer)) return;
  if (event.target instanceof Element && event.target.closest(TAKES_FILES)) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = "none";
}

for (const name of ["dragover", "drop"] as const) window.addEventListener(name, preventStrayDrop);
