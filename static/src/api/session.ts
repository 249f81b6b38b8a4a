import { signal } from "@preact/signals";

/** `lost`: there was one, and it ended under the person's hands. What they typed stays. */
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
