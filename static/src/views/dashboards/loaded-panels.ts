/** Loads charts and grids once for all panels; a failed load can be retried. */
import { signal } from "@preact/signals";

type Panels = typeof import("./panels");

export const panels = signal<Panels | undefined>(undefined);
export const panelsFailure = signal<unknown>(undefined);
let loading = false;

export async function loadPanels(): Promise<void> {
  if (loading || panels.value) return;
  loading = true;
  panelsFailure.value = undefined;
  try {
    panels.value = await import("./panels");
  } catch (error) {
    panelsFailure.value = error;
  } finally {
    loading = false;
  }
}
