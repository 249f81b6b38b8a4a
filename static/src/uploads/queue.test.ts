import { describe, expect, it } from "vitest";
import { ApiFailure } from "../api/failure";
import { CONCURRENCY_MAX, UploadQueue, type Sent, type Transport } from "./queue";

/** A queue on a clock and a network that tests hold in their hands. */
function bench() {
  let now = 0;
  let ready = true;
  const timers: { at: number; run: () => void }[] = [];
  const sending: {
    key: string;
    replace: boolean;
    end: (sent: Sent) => void;
    sent: (bytes: number) => void;
    packed: (bytes: number) => void;
    aborted: boolean;
  }[] = [];
  const transport: Transport = ({ key, replace }, sent, packed) => {
    let end: (sent: Sent) => void = () => undefined;
    const ended = new Promise<Sent>((resolve) => (end = resolve));
    const one = { key, replace, end, sent, packed, aborted: false };
    sending.push(one);
    return { ended, abort: () => (one.aborted = true) };
  };
  const queue = new UploadQueue(transport, {
    now: () => now,
    later: (ms, run) => void timers.push({ at: now + ms, run }),
    ready: () => ready,
    onEnded: () => undefined,
  });
  const settle = async () => {
    for (let at = 0; at < 5; at += 1) await Promise.resolve();
  };
  return {
    queue,
    sending,
    settle,
    open: () => sending.filter(({ aborted }) => !aborted),
    setReady: (is: boolean) => (ready = is),
    pass: async (ms: number) => {
      now += ms;
      for (const timer of timers.splice(0).sort((a, b) => a.at - b.at)) {
        if (timer.at <= now) timer.run();
        else timers.push(timer);
      }
      await settle();
    },
    end: async (at: number, sent: Sent) => {
      sending[at]?.end(sent);
      await settle();
    },
  };
}

const file = (key: string, size = 10) => ({ key, file: new Blob(["x".repeat(size)]) });
const failed = (status: number, retryAfter?: number): Sent => ({
  done: false,
  failure: new ApiFailure(status, "code", "why", retryAfter === undefined ? {} : { retryAfter }),
});
const done: Sent = { done: true };

describe("upload queue", () => {
  it("sends a few files at a time, and the next when one has ended", async () => {
    const { queue, sending, end } = bench();
    queue.add(Array.from({ length: 10 }, (_, at) => file(`f${at}`)));
    expect(sending).toHaveLength(CONCURRENCY_MAX);
    await end(0, done);
    expect(sending.map(({ key }) => key)).toEqual(["f0", "f1", "f2", "f3"]);
  });

  it("backs off after transient failures, and fails after five attempts", async () => {
    const { queue, sending, end, pass } = bench();
    const { uploads } = queue.add([file("a")]);
    for (const rest of [1_000, 2_000, 4_000, 8_000]) {
      await end(sending.length - 1, failed(503));
      const tries = sending.length;
      await pass(rest - 1);
      expect(sending).toHaveLength(tries);
      await pass(1);
      expect(sending).toHaveLength(tries + 1);
    }
    await end(4, failed(503));
    expect(uploads[0]?.state).toBe("failed");
    queue.retry();
    await end(5, done);
    expect(uploads[0]?.state).toBe("done");
  });

  it("tells how much is compressed while nothing is sent", async () => {
    const { queue, sending, pass } = bench();
    const { uploads } = queue.add([{ ...file("a", 100), pack: true }]);
    sending[0]?.packed(40);
    await pass(100);
    expect(queue.state.value).toMatchObject({ bytesSent: 0, packing: { done: 40, total: 100 } });
    sending[0]?.sent(10);
    await pass(100);
    expect([queue.state.value.packing, queue.state.value.bytesSent, uploads[0]?.packed]).toEqual([
      undefined,
      10,
      undefined,
    ]);
  });

  it("backs off as long as the service asks for", async () => {
    const { queue, sending, end, pass } = bench();
    queue.add([file("a")]);
    await end(0, failed(429, 7));
    await pass(6_999);
    expect(sending).toHaveLength(1);
    await pass(1);
    expect(sending).toHaveLength(2);
  });

  it("doesn't retry permanent failures", async () => {
    const { queue, end } = bench();
    const { uploads } = queue.add([file("a")]);
    await end(0, failed(400));
    expect(uploads[0]).toMatchObject({ state: "failed", why: "why" });
  });

  it("waits for a new login without counting an attempt", async () => {
    const { queue, sending, end, setReady } = bench();
    const { uploads } = queue.add([file("a")]);
    setReady(false);
    await end(0, failed(401));
    expect(uploads[0]).toMatchObject({ state: "waiting", attempts: 0 });
    expect(sending).toHaveLength(1);
    setReady(true);
    queue.work();
    expect(sending).toHaveLength(2);
  });

  it("asks once about all existing files, and applies the answer to later ones", async () => {
    const { queue, sending, end, settle } = bench();
    const { uploads } = queue.add(["a", "b", "c", "d"].map((key) => file(key)));
    await end(0, failed(412));
    await end(1, failed(412));
    expect(uploads.map(({ state }) => state)).toEqual(["exists", "exists", "sending", "sending"]);
    queue.decide(false);
    await end(2, failed(412));
    await settle();
    expect(uploads.map(({ state }) => state)).toEqual(["kept", "kept", "kept", "sending"]);
    expect(sending.every(({ replace }) => !replace)).toBe(true);
  });

  it("overwrites existing files if told to", async () => {
    const { queue, sending, end } = bench();
    queue.add([file("a")]);
    await end(0, failed(412));
    queue.decide(true);
    expect(sending[1]).toMatchObject({ key: "a", replace: true });
  });

  it("refuses files that are too large or have no valid key before sending, with the reason", () => {
    const { queue, sending } = bench();
    const large = { key: "big.csv", file: { size: 104_857_601 } as Blob };
    const { uploads, ended } = queue.add([large, file("a//b.csv")]);
    expect(sending).toHaveLength(0);
    expect(uploads.map(({ state }) => state)).toEqual(["refused", "refused"]);
    expect(uploads[0]?.why).toContain("in parts");
    expect(uploads[1]?.why).toContain("empty segment");
    return ended;
  });

  it("aborts uploads on pause, and restarts them from the beginning", async () => {
    const { queue, sending, open, end } = bench();
    const { uploads } = queue.add([file("a"), file("b")]);
    queue.pause();
    expect(open()).toHaveLength(0);
    await end(0, failed(0));
    expect(uploads.map(({ state }) => state)).toEqual(["waiting", "waiting"]);
    queue.resume();
    expect(sending.filter(({ aborted }) => !aborted)).toHaveLength(2);
  });

  it("aborts everything on cancel, and its batch ends", async () => {
    const { queue, open, pass } = bench();
    const batch = queue.add(Array.from({ length: 5 }, (_, at) => file(`f${at}`)));
    queue.cancelAll();
    await batch.ended;
    expect(open()).toHaveLength(0);
    await pass(1_000);
    expect(queue.state.value).toMatchObject({ active: false, files: 5 });
    expect(queue.state.value.counts.cancelled).toBe(5);
  });

  it("reports bytes, rate and remaining time while sending", async () => {
    const { queue, sending, pass } = bench();
    queue.add([file("a", 1_000)]);
    sending[0]?.sent(100);
    await pass(1_000);
    sending[0]?.sent(200);
    await pass(100);
    expect(queue.state.value).toMatchObject({ bytesSent: 200, bytesTotal: 1_000 });
    expect(queue.state.value.rate).toBeGreaterThan(0);
    expect(queue.state.value.secondsLeft).toBeGreaterThan(0);
  });

  it("counts one upload at a time, and remembers what the earlier ones sent", async () => {
    const { queue, pass, end } = bench();
    const first = queue.add([file("pipelines/shop/a.csv"), file("pipelines/shop/b.csv")]);
    await end(0, done);
    await end(1, done);
    const second = queue.add([file("pipelines/shop/b.csv")]);
    await pass(100);
    expect([queue.state.value.files, queue.state.value.counts.done]).toEqual([1, 0]);
    expect([queue.ended(9), queue.batches()]).toEqual([[first], [second]]);
    await end(2, done);
    await pass(100);
    expect([queue.state.value.files, queue.state.value.counts.done]).toEqual([1, 1]);
    expect(queue.ended(9)).toEqual([second, first]);
    // The file that came again is of the later upload.
    expect(queue.uploadedBy(first)).toEqual(new Map([["shop", ["a.csv"]]]));
    expect(queue.uploadedBy(second)).toEqual(new Map([["shop", ["b.csv"]]]));
    queue.clear();
    expect(queue.ended(9)).toEqual([]);
  });
  it("keeps failed files in the counts until they are dismissed", async () => {
    const { queue, pass, end } = bench();
    queue.add([file("a")]);
    await end(0, failed(400));
    queue.add([file("b")]);
    await end(1, done);
    await pass(100);
    expect([queue.state.value.files, queue.state.value.counts.failed]).toEqual([2, 1]);
  });
  it("retries the failed files of one batch, even after the list was cleared", async () => {
    const { queue, sending, end, pass } = bench();
    const mine = queue.add([file("mine")]);
    queue.add([file("other")]);
    await end(0, failed(400));
    await end(1, failed(400));
    await pass(1_000);
    queue.clear();
    queue.retry(mine);
    expect(sending.slice(2).map(({ key }) => key)).toEqual(["mine"]);
    await end(2, done);
    await pass(1_000);
    expect(queue.state.value).toMatchObject({ files: 1, active: false });
    expect(queue.state.value.counts).toMatchObject({ done: 1, failed: 0 });
    expect(mine.left).toBe(0);
  });

  it("holds ten thousand files and shows a few, those that need attention first", async () => {
    const { queue, end } = bench();
    queue.add(Array.from({ length: 10_000 }, (_, at) => file(`f${at}`, 1)));
    await end(1, failed(400));
    const shown = queue.shown(20);
    expect(shown).toHaveLength(20);
    expect(shown[0]).toMatchObject({ key: "f1", state: "failed" });
  });
});
