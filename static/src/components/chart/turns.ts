/** Drawings take turns, each in a task of its own: a dashboard that draws all charts in one blocks the page. */
const waiting = new Set<() => void>();
let timer: ReturnType<typeof setTimeout> | undefined;

function next(): void {
  const [work] = waiting;
  timer = undefined;
  if (!work) return;
  waiting.delete(work);
  if (waiting.size > 0) timer = setTimeout(next);
  work();
}

/** Calls `work` when its turn comes. Returns a function that takes it out of the line. */
export function inTurn(work: () => void): () => void {
  waiting.add(work);
  timer ??= setTimeout(next);
  return () => void waiting.delete(work);
}
