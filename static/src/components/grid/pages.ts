/**
 * Loads rows of a large table page by page.
 *
 * Invariant: at most `FLIGHTS_MAX` requests and `PAGES_MAX` cached pages. Pages that were scrolled past aren't
 * requested, or are cancelled.
 */
import { useEffect, useMemo, useState } from "preact/hooks";
import { useRecovered } from "../../api/recovered";
import type { Row } from "../../api/types";
import type { RowSource } from "./types";

const FLIGHTS_MAX = 2;
const PAGES_MAX = 60;
/** Interval for checking what is needed during fast scrolling, in milliseconds. */
const CHECK_MS = 60;

/** Fetches `count` rows from `first`; fewer rows mean a cut page. */
export type FetchPage = (first: number, count: number, signal: AbortSignal) => Promise<Row[]>;

interface Page {
  rows: Row[];
  used: number;
}

export class Pages {
  private readonly kept = new Map<number, Page>();
  private readonly flights = new Map<number, AbortController>();
  private readonly failed = new Map<number, unknown>();
  private wanted: number[] = [];
  private clock = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private ended = false;

  constructor(
    private readonly total: number,
    private readonly size: number,
    private readonly fetchPage: FetchPage,
    private readonly changed: () => void,
    known: Row[] = [],
  ) {
    // A known first page counts only if it is complete.
    if (known.length >= Math.min(size, total)) this.kept.set(0, { rows: known.slice(0, size), used: 0 });
  }

  get(index: number): Row | undefined {
    return this.kept.get(Math.floor(index / this.size))?.rows[index % this.size];
  }

  /** Error of the pages that are needed. */
  get failure(): unknown {
    return this.wanted.map((page) => this.failed.get(page)).find((error) => error !== undefined);
  }

  need(first: number, end: number): void {
    const from = Math.floor(Math.max(0, first) / this.size);
    const to = Math.floor(Math.max(0, Math.min(end, this.total) - 1) / this.size);
    const middle = (first + end) / 2 / this.size - 0.5;
    const pages = Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => from + at);
    this.wanted = pages.sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
    this.clock += 1;
    for (const page of pages) {
      const known = this.kept.get(page);
      if (known) known.used = this.clock;
    }
    if (this.timer !== undefined) return;
    this.look();
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.look();
    }, CHECK_MS);
  }

  retry(): void {
    this.failed.clear();
    this.changed();
    this.look();
  }

  /** Retries failed pages after the service recovered. */
  recovered(): void {
    if (this.failed.size > 0) this.retry();
  }

  /** Cancels all requests. */
  end(): void {
    this.ended = true;
    clearTimeout(this.timer);
    for (const flight of this.flights.values()) flight.abort();
  }

  private look(): void {
    if (this.ended) return;
    for (const [page, flight] of this.flights) {
      if (this.wanted.includes(page)) continue;
      this.flights.delete(page);
      flight.abort();
    }
    for (const page of this.wanted) {
      if (this.flights.size >= FLIGHTS_MAX) return;
      if (!this.kept.has(page) && !this.flights.has(page) && !this.failed.has(page)) void this.fetch(page);
    }
  }

  private async fetch(page: number): Promise<void> {
    const flight = new AbortController();
    this.flights.set(page, flight);
    const first = page * this.size;
    try {
      const rows = await this.fetchPage(first, Math.min(this.size, this.total - first), flight.signal);
      if (!flight.signal.aborted) this.keep(page, rows);
    } catch (error) {
      if (!flight.signal.aborted) this.failed.set(page, error);
    }
    if (this.flights.get(page) === flight) this.flights.delete(page);
    if (this.ended || flight.signal.aborted) return;
    this.changed();
    this.look();
  }

  private keep(page: number, rows: Row[]): void {
    this.kept.set(page, { rows, used: this.clock });
    const spare = [...this.kept].filter(([key]) => !this.wanted.includes(key)).sort(([, a], [, b]) => a.used - b.used);
    for (const [key] of spare.slice(0, Math.max(0, this.kept.size - PAGES_MAX))) this.kept.delete(key);
  }
}

/**
 * Rows loaded page by page. Memoize `fetchPage` (`useCallback`): a new function drops all pages. `known`: the first
 * page, if available.
 */
export function usePages(total: number, pageSize: number, fetchPage: FetchPage, known?: Row[]): RowSource {
  const [version, setVersion] = useState(0);
  const pages = useMemo(
    () => new Pages(total, pageSize, fetchPage, () => setVersion((before) => before + 1), known),
    [total, pageSize, fetchPage, known],
  );
  useEffect(() => () => pages.end(), [pages]);
  useRecovered(() => pages.recovered());
  const need = useMemo(() => (first: number, end: number) => pages.need(first, end), [pages]);
  return useMemo(() => {
    const error = pages.failure;
    return {
      total,
      get: (index) => pages.get(index),
      need,
      failure: error === undefined ? undefined : { error, retry: () => pages.retry() },
    };
    // A new source for each version, so that the grid draws loaded rows.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [pages, total, version]);
}
