import { afterEach, describe, expect, it, vi } from "vitest";
import { uploads } from "../../uploads";
import type { Batch } from "../../uploads/queue";
import { PipelineCreation, type Plan } from "./create";

const json = (body: unknown, status = 200) =>
  new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });

/** Answers of a service without runs: one begins when it is asked for. */
function serve(onAsked: (what: string) => void = () => undefined): string[] {
  const asked: string[] = [];
  let jobs: unknown[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation((input, init) => {
    const request = input instanceof Request ? input : undefined;
    const method = request?.method ?? init?.method ?? "GET";
    const path = new URL(input instanceof Request ? input.url : input, location.origin).pathname;
    const what = `${method} ${path}`;
    asked.push(what);
    onAsked(what);
    if (what === "POST /api/p/taxi/jobs") jobs = [{ job_id: "1", pipeline: "taxi", status: "running" }];
    if (method === "GET" && path.endsWith("/jobs")) return Promise.resolve(json({ jobs }));
    if (what === "GET /api/pipelines") return Promise.resolve(json({ pipelines: [], truncated: false }));
    return Promise.resolve(json({}));
  });
  return asked;
}

const uploaded = (key: string): Batch =>
  ({ files: 1, replace: true, left: 0, ended: Promise.resolve(), uploads: [{ key, state: "done" }] }) as never;

function plan(name: string): Plan {
  const body = new File(["a\n1\n"], name);
  const parts = [{ key: `pipelines/taxi/taxi/${name}`, name, body, pack: false, of: name }];
  return { slug: "taxi", title: "Taxi", existing: false, mappings: [], parts };
}

afterEach(() => vi.restoreAllMocks());

describe("pipeline creation", () => {
  it("uploads files and starts the run even if the view is left while the config is saved", async () => {
    const maker = new PipelineCreation();
    const asked = serve((what) => what === "PUT /api/p/taxi/config" && maker.stop());
    const files = plan("may.tsv");
    const add = vi.spyOn(uploads, "add").mockReturnValue(uploaded(files.parts[0]?.key ?? ""));
    expect(await maker.make(files)).toBe(false);
    expect(add).toHaveBeenCalledTimes(1);
    expect(asked).toContain("POST /api/p/taxi/jobs");
  });

  it("goes on with the same pipeline after its first run failed", async () => {
    const maker = new PipelineCreation();
    const asked = serve((what) => {
      if (what === "POST /api/p/taxi/jobs") throw new Error("no worker");
    });
    expect(maker.target).toBeUndefined();
    vi.spyOn(uploads, "add").mockReturnValue(uploaded("pipelines/taxi/taxi/may.tsv"));
    expect(await maker.make(plan("may.tsv"))).toBe(false);
    expect(maker.state.value?.failure?.step).toBe("run");
    maker.again();
    expect([maker.begun, maker.target]).toEqual([true, "taxi"]);
    expect(asked.filter((what) => what === "POST /api/pipelines")).toHaveLength(1);
  });
});
