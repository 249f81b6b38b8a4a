/** The page's one queue of uploads: it goes on whatever view is shown. */
import { effect } from "@preact/signals";
import { connection } from "../api/connection";
import { client, keys } from "../api/queries";
import { session } from "../api/session";
import { pipelineOf } from "./keys";
import { UploadQueue } from "./queue";
import { overHttp } from "./transport";

const ready = (): boolean => session.state.value === "in" && connection.state.value !== "unreachable";

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
