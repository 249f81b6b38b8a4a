import { useSignalEffect } from "@preact/signals";
import { connection } from "./connection";
import { session } from "./session";

/** Does something when the service answers again, or somebody logged in again: what failed meanwhile may go well now. */
export function useRecovered(action: () => void): void {
  useSignalEffect(() => {
    if (session.state.value === "in" && connection.state.value === "ok") action();
  });
}
