/**
 * What is typed of one config, and what it is based on.
 *
 * Invariant: text that isn't stored is never replaced without being asked; a draft of this browser is dropped once it is
 * stored or thrown away.
 */
import { computed, effect, signal, type Signal } from "@preact/signals";
import { kept } from "../../browser/kept";

/** A config as the service has it; without a tag there is none yet. */
export interface Stored {
  text: string;
  etag: string | null;
}

/** What this browser keeps. `base`: what it began with, if that isn't too long to be kept as well. */
interface Draft {
  text: string;
  base: string | null;
  etag: string | null;
  at: string;
}

/** Longer bases are not kept; a merge then knows less. In characters. */
const BASE_MAX = 200 * 1024;
/** Typing is kept this long after the last key, in milliseconds. */
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
  /** What `text` began with. */
  readonly base = signal<Stored | undefined>(undefined);
  /** Unsaved text came back after a reload. */
  readonly restored = signal(false);
  /** Unsaved text of this browser whose config was changed meanwhile; until that is decided, `text` is what is stored. */
  readonly offered = signal<Draft | undefined>(undefined);
  /** What is stored now, while the text is based on something else. */
  readonly moved = signal<Stored | undefined>(undefined);
  readonly dirty = computed(() => this.base.value !== undefined && this.text.value !== this.base.value.text);
  private readonly store: Signal<Draft | null>;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(slug: string) {
    this.store = kept<Draft | null>(`draft.config.${slug}`, null, isDraft);
  }

  /** Keeps what is typed from now on; gives how to end it. */
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
    if (!base || this.offered.peek()) return;
    const text = this.text.peek();
    if (text === base.text) {
      if (this.store.peek()) this.store.value = null;
      return;
    }
    const before = this.store.peek();
    if (before?.text === text && before.etag === base.etag) return;
    const short = base.text.length <= BASE_MAX ? base.text : null;
    this.store.value = { text, base: short, etag: base.etag, at: new Date().toISOString() };
  }

  /** Whether this browser has text that isn't stored. */
  unsaved(): boolean {
    return this.store.peek() !== null;
  }

  /** What the service has, now. */
  arrived(stored: Stored): void {
    const base = this.base.peek();
    if (!base) return this.first(stored);
    if (this.offered.peek()) return this.under(stored);
    if (stored.etag === base.etag && stored.text === base.text) this.moved.value = undefined;
    else if (!this.dirty.peek() || stored.text === this.text.peek()) this.take(stored);
    else this.moved.value = stored;
  }

  private first(stored: Stored): void {
    const draft = this.store.peek();
    this.base.value = stored;
    this.text.value = stored.text;
    if (!draft || draft.text === stored.text) return;
    if (draft.etag === stored.etag) {
      this.text.value = draft.text;
      this.restored.value = true;
    } else this.offered.value = draft;
  }

  /** What is stored moves on below the draft that is offered. */
  private under(stored: Stored): void {
    if (this.offered.peek()?.text === stored.text) return this.take(stored);
    this.base.value = stored;
    this.text.value = stored.text;
  }

  /** The text is this, which is stored. */
  take(stored: Stored): void {
    this.base.value = stored;
    this.text.value = stored.text;
    this.settled();
  }

  /** The text, whatever it is now, goes on from what is stored. */
  rebase(stored: Stored, text: string): void {
    this.base.value = stored;
    this.text.value = text;
    this.settled();
  }

  /** It was saved as `text`; more may have been typed since. */
  saved(stored: Stored): void {
    this.base.value = stored;
    this.settled();
  }

  discard(): void {
    const now = this.moved.peek() ?? this.base.peek();
    if (now) this.take(now);
  }

  private settled(): void {
    this.moved.value = undefined;
    this.restored.value = false;
    this.offered.value = undefined;
    this.keep();
  }
}
