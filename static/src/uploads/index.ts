/** The page's one queue of uploads: it goes on whatever view is shown. */
import { effect } from "@preact/signals";
import { connection } from "../api/connection";
import { client, keys } from "../api/queries";
import { session } from "../api/session";
import { hasFiles } from "./found";
import { pipelineOf } from "./keys";
import { UploadQueue } from "./queue";
import { overHttp } from "./transport";

/** Attempts are for files: none is spent while the service or its store is known to fail. */
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

/** Where files may be dropped though no view says so. */
const TAKES_FILES = 'input[type="file"], [contenteditable="true"]';

/** A file that is dropped where nothing takes it would be opened by the browser, in place of the page. */
function astray(event: DragEvent): void {
  if (event.defaultPrevented || !event.dataTransfer || !hasFiles(event.dataTransfer)) return;
  if (event.target instanceof Element && event.target.closest(TAKES_FILES)) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = "none";
}

for (const name of ["dragover", "drop"] as const) window.addEventListener(name, astray);
