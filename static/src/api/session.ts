import { signal } from "@preact/signals";

/** `lost`: the session expired while the page was open. Unsaved input is kept. */
type Session = "unknown" | "in" | "out" | "lost";

const state = signal<Session>("unknown");

export const session = {
  state,
  opened(): void {
    state.value = "in";
  },
  closed(): void {
    state.value = "out";
  },
  lost(): void {
    state.value = state.value === "in" || state.value === "lost" ? "lost" : "out";
  },
};
