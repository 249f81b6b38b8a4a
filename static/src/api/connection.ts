import { signal } from "@preact/signals";

/** `unreachable`: no response at all. `failing`: the service responds, but a store behind it doesn't. */
type Connection = "ok" | "unreachable" | "failing";

const state = signal<Connection>("ok");
const PROBE_FIRST_MS = 1_000;
const PROBE_LAST_MS = 15_000;

let probing: { timer: number; wait: number } | undefined;
const onRecovery = new Set<() => void>();

async function probe(): Promise<Connection> {
  try {
    const response = await fetch("/readyz", { cache: "no-store" });
    return response.ok ? "ok" : "failing";
  } catch {
    return "unreachable";
  }
}

async function probeAgain(): Promise<void> {
  const wait = Math.min((probing?.wait ?? PROBE_FIRST_MS / 2) * 2, PROBE_LAST_MS);
  window.clearTimeout(probing?.timer);
  const found = await probe();
  const troubled = state.value !== "ok";
  state.value = found;
  if (found === "ok") {
    probing = undefined;
    if (troubled) for (const action of onRecovery) action();
    return;
  }
  probing = { wait, timer: window.setTimeout(() => void probeAgain(), wait) };
}

/** State of the connection; polls the service until it recovers. */
export const connection = {
  state,
  /** Records that a request got no response. */
  lost(kind: Exclude<Connection, "ok">): void {
    state.value = kind;
    if (!probing) probing = { wait: PROBE_FIRST_MS, timer: window.setTimeout(() => void probeAgain(), PROBE_FIRST_MS) };
  },
  /** Records a 5xx response and checks the health of the service. */
  checkHealth(): void {
    if (!probing && state.value === "ok") {
      probing = { wait: PROBE_FIRST_MS, timer: 0 };
      void probeAgain();
    }
  },
  answered(): void {
    if (state.value === "unreachable") void probeAgain();
  },
  /** Checks at once. */
  retry(): void {
    void probeAgain();
  },
  /** Registers an action for each recovery; returns the unsubscribe function. */
  onRecovered(action: () => void): () => void {
    onRecovery.add(action);
    return () => onRecovery.delete(action);
  },
};

window.addEventListener("offline", () => connection.lost("unreachable"));
window.addEventListener("online", () => connection.retry());
// A part of the UI didn't load.
window.addEventListener("vite:preloadError", () => connection.checkHealth());
