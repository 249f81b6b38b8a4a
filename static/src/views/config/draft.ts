/**
 * Unsaved text of a config and the version it is based on.
 *
 * Invariant: unsaved text is never replaced without confirmation; the stored draft is dropped after saving or
 * discarding.
 */
import { computed, effect, signal, type Signal } from "@preact/signals";
import { isPersisted, persisted } from "../../browser/persisted";

/** The stored config; without an ETag, there is none yet. */
export interface Stored {
  text: string;
  etag: string | null;
}

/** Draft in this browser. `base`: the text it started from, unless that is too long to store. */
interface Draft {
  text: string;
  base: string | null;
  etag: string | null;
  at: string;
}

/** Longer bases aren't stored, so merges know less; in characters. */
const BASE_MAX = 200 * 1024;
/** Delay before typing is stored, in milliseconds. */
const KEEP_MS = 300;

const isText = (value: unknown): value is string | null => value === null || typeof value === "string";

function isDraft(value: unknown): value is Draft | null {
  if (value === null) return true;
  if (typeof value !== "object") return false;
  const { text, base, etag, at } = value as Partial<Draft>;
  return typeof text === "string" && isText(base) && isText(etag) && typeof at === "string";
}

export class ConfigDraft {
  readonly text = signal("");
  /** The version that `text` started from. */
  readonly base = signal<Stored | undefined>(undefined);
  /** Unsaved text was restored after a reload. */
  readonly restored = signal(false);
  /** Unsaved text whose config changed meanwhile; until decided, `text` is the stored config. */
  readonly offeredDraft = signal<Draft | undefined>(undefined);
  /** The stored config, if `text` is based on another version. */
  readonly newerVersion = signal<Stored | undefined>(undefined);
  readonly dirty = computed(() => this.base.value !== undefined && this.text.value !== this.base.value.text);
  /** False if the browser can't store the unsaved text: it is too long, or storage is full or disabled. */
  readonly isKept = signal(true);
  private readonly name: string;
  private readonly store: Signal<Draft | null>;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(slug: string) {
    this.name = `draft.config.${slug}`;
    this.store = persisted<Draft | null>(this.name, null, isDraft);
  }

  /** Stores typing from now on; returns the stop function. */
  keeping(): () => void {
    const end = effect(() => {
      void this.text.value;
      void this.base.value;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.keep(), KEEP_MS);
    });
    const now = () => this.keep();
    window.addEventListener("pagehide", now);
    return () => {
      end();
      clearTimeout(this.timer);
      this.keep();
      window.removeEventListener("pagehide", now);
    };
  }

  private keep(): void {
    const base = this.base.peek();
    if (!base || this.offeredDraft.peek()) return;
    const text = this.text.peek();
    if (text === base.text) {
      if (this.store.peek()) this.store.value = null;
      return;
    }
    const before = this.store.peek();
    if (before?.text === text && before.etag === base.etag) return;
    const short = base.text.length <= BASE_MAX ? base.text : null;
    this.store.value = { text, base: short, etag: base.etag, at: new Date().toISOString() };
    this.isKept.value = isPersisted(this.name);
  }

  /** Whether this browser has unsaved text. */
  unsaved(): boolean {
    return this.store.peek() !== null;
  }

  /** Receives the stored config. */
  arrived(stored: Stored): void {
    const base = this.base.peek();
    if (!base) return this.first(stored);
    if (this.offeredDraft.peek()) return this.under(stored);
    if (stored.etag === base.etag && stored.text === base.text) this.newerVersion.value = undefined;
    else if (!this.dirty.peek() || stored.text === this.text.peek()) this.take(stored);
    else this.newerVersion.value = stored;
  }

  private first(stored: Stored): void {
    const draft = this.store.peek();
    this.base.value = stored;
    this.text.value = stored.text;
    if (!draft || draft.text === stored.text) return;
    if (draft.etag === stored.etag) {
      this.text.value = draft.text;
      this.restored.value = true;
    } else this.offeredDraft.value = draft;
  }

  /** Updates the stored config below an offered draft. */
  private under(stored: Stored): void {
    if (this.offeredDraft.peek()?.text === stored.text) return this.take(stored);
    this.base.value = stored;
    this.text.value = stored.text;
  }

  /** Replaces the text with the stored config. */
  take(stored: Stored): void {
    this.base.value = stored;
    this.text.value = stored.text;
    this.settled();
  }

  /** Rebases the text on the stored config. */
  rebase(stored: Stored, text: string): void {
    this.base.value = stored;
    this.text.value = text;
    this.settled();
  }

  /** Records a save of `text`; more may have been typed since. */
  saved(stored: Stored): void {
    this.base.value = stored;
    this.settled();
  }

  discard(): void {
    const now = this.newerVersion.peek() ?? this.base.peek();
    if (now) this.take(now);
  }

  private settled(): void {
    this.newerVersion.value = undefined;
    this.restored.value = false;
    this.offeredDraft.value = undefined;
    this.keep();
  }
}
