/**
 * The draft of a dashboard.
 *
 * Invariants: unsaved text stays in this browser; a save only overwrites the version it started from; one save runs
 * at a time.
 */
import { computed, signal } from "@preact/signals";
import type { ApiFailure } from "../../api/failure";
import { asFailure } from "../../api/failure";
import type { ConfigRename, DashboardVerdict } from "../../api/types";
import { persisted } from "../../browser/persisted";
import { repaired } from "../../boards/repair";
import { missing, publish, saveDraft, type Saved, statesOf, textOf, validate } from "../../api/dashboards";

/** Delay before saving, in milliseconds. */
const DEBOUNCE_MS = 700;
/** Steps that can be undone. */
const STEPS_MAX = 100;
/** Maximum number of validations of a repair. */
const REPAIR_ROUNDS_MAX = 20;

/** The requests of a draft; tests replace them. */
export interface Service {
  statesOf: typeof statesOf;
  textOf: typeof textOf;
  saveDraft: typeof saveDraft;
  validate: typeof validate;
  publish: typeof publish;
}

interface Typed {
  text: string;
  /** ETag of the draft that the text is based on. */
  etag: string | null;
  /** The text that it is based on. */
  base?: string | undefined;
}

const isTyped = (value: unknown): value is Typed | null =>
  value === null ||
  (typeof value === "object" && value !== null && "text" in value && typeof value.text === "string" && "etag" in value);

type State = "loading" | "ready" | "failed";

export class Draft {
  readonly text = signal("");
  readonly state = signal<State>("loading");
  /** Why the draft couldn't be loaded. */
  readonly failure = signal<ApiFailure | undefined>(undefined);
  /** The stored draft, if any. */
  readonly saved = signal<Saved | undefined>(undefined);
  readonly published = signal<Saved | undefined>(undefined);
  readonly saving = signal(false);
  readonly unsaved = signal<ApiFailure | undefined>(undefined);
  readonly verdict = signal<DashboardVerdict | undefined>(undefined);
  readonly validating = signal(false);
  /** Why the last validation failed to run. */
  readonly validationFailure = signal<ApiFailure | undefined>(undefined);
  /** A concurrent save by someone else. */
  readonly conflict = signal<Saved | undefined>(undefined);
  /** The text from which both sides of the conflict started, if known. */
  readonly ancestor = signal<string | undefined>(undefined);
  readonly dirty = computed(() => this.state.value === "ready" && this.text.value !== this.base()?.text);
  /** Whether there is something to publish. */
  readonly isChanged = computed(() => this.dirty.value || this.saved.value !== undefined);
  /** The stored version to preview: the draft, or the published one. */
  readonly shown = computed(() => this.base());

  /** Texts to go back to, and forward to. */
  private readonly past = signal<string[]>([]);
  private readonly future = signal<string[]>([]);
  readonly canUndo = computed(() => this.past.value.length > 0);
  readonly canRedo = computed(() => this.future.value.length > 0);
  /** Whether the last change was typed; a text typed in one go is one step. */
  private typing = false;
  private create: (() => Promise<void>) | undefined;

  private readonly local;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private saveDone: Promise<boolean> = Promise.resolve(true);
  private judging: AbortController | undefined;

  constructor(
    private readonly slug: string,
    private readonly name: string,
    private readonly service: Service = { statesOf, textOf, saveDraft, validate, publish },
  ) {
    this.local = persisted<Typed | null>(`dashboard.${slug}.${name}`, null, isTyped);
  }

  private base(): Saved | undefined {
    return this.saved.value ?? this.published.value;
  }

  private async stored(draft: boolean): Promise<Saved | undefined> {
    const there = await this.service.statesOf(this.slug, this.name);
    if (!(draft ? there.draft : there.published)) return undefined;
    try {
      return await this.service.textOf(this.slug, this.name, draft);
    } catch (error) {
      // It was deleted or published meanwhile.
      if (asFailure(error).code === "dashboard_not_found") return undefined;
      throw error;
    }
  }

  /** `create`: creates the draft first; once. */
  async load(create = this.create): Promise<void> {
    this.state.value = "loading";
    this.create = create;
    try {
      await create?.();
      this.create = undefined;
      const [saved, published] = await Promise.all([this.stored(true), this.stored(false)]);
      this.saved.value = saved;
      this.published.value = published;
      const base = this.base();
      if (!base) throw missing(this.name);
      this.text.value = base.text;
      this.state.value = "ready";
      this.restore(saved);
      void this.validate();
    } catch (error) {
      this.failure.value = asFailure(error);
      this.state.value = "failed";
    }
  }

  /** Restores text that an earlier page didn't save. */
  private restore(saved: Saved | undefined): void {
    const typed = this.local.value;
    if (!typed) return;
    if (typed.text === this.base()?.text) {
      this.local.value = null;
      return;
    }
    this.text.value = typed.text;
    if (typed.etag === (saved?.etag ?? null)) this.later();
    else {
      this.ancestor.value = typeof typed.base === "string" ? typed.base : undefined;
      this.conflict.value = saved ?? this.published.value;
    }
  }

  /** Takes typed text. */
  type(text: string): void {
    if (text === this.text.value) return;
    if (!this.typing) this.step();
    this.typing = true;
    this.put(text);
  }

  /** Takes the text of an edit, and saves it at once. */
  edit(text: string): void {
    if (text === this.text.value) return;
    this.step();
    this.typing = false;
    this.put(text);
    void this.save();
  }

  private step(): void {
    this.past.value = [...this.past.value, this.text.value].slice(-STEPS_MAX);
    this.future.value = [];
  }

  undo(): void {
    this.go(this.past, this.future);
  }

  redo(): void {
    this.go(this.future, this.past);
  }

  private go(from: typeof this.past, to: typeof this.past): void {
    const text = from.value.at(-1);
    if (text === undefined) return;
    from.value = from.value.slice(0, -1);
    to.value = [...to.value, this.text.value];
    this.typing = false;
    this.put(text);
    void this.save();
  }

  private put(text: string): void {
    this.text.value = text;
    this.local.value = { text, etag: this.saved.value?.etag ?? null, base: this.base()?.text };
    if (!this.conflict.value) this.later();
  }

  private later(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.save(), DEBOUNCE_MS);
  }

  /** Saves unsaved text; false on failure. */
  save(): Promise<boolean> {
    clearTimeout(this.timer);
    this.saveDone = this.saveDone.then(() => this.saveNow());
    return this.saveDone;
  }

  private async saveNow(): Promise<boolean> {
    if (this.conflict.value) return false;
    if (!this.dirty.value) return true;
    const text = this.text.value;
    this.saving.value = true;
    try {
      const { verdict, etag } = await this.service.saveDraft(
        this.slug,
        this.name,
        text,
        this.saved.value?.etag ?? null,
      );
      const saved = { text, etag };
      // If it isn't removed, it can still be published.
      if (text === this.published.value?.text) await this.remove(saved).catch(() => undefined);
      else this.took(text, saved);
      // Validation without SQL; the rest follows.
      if (!verdict.ok) this.verdict.value = verdict;
      void this.validate();
      return true;
    } catch (error) {
      const failure = asFailure(error);
      if (failure.status === 412) await this.loadConflict();
      else this.unsaved.value = failure;
      return false;
    } finally {
      this.saving.value = false;
    }
  }

  /**
   * Removes a draft that equals the published version, by publishing it. Views learn of the draft only if it stays: they
   * would read data that is gone.
   * @throws ApiFailure; the draft stays
   */
  private async remove(saved: Saved): Promise<void> {
    try {
      await this.service.publish(this.slug, this.name, saved.etag);
      this.took(saved.text, undefined);
    } catch (error) {
      this.took(saved.text, saved);
      throw error;
    }
  }

  /** Takes what the service has now: the stored text, and the draft if it is one. */
  private took(text: string, draft: Saved | undefined): void {
    this.saved.value = draft;
    this.unsaved.value = undefined;
    this.local.value =
      this.text.value === text ? null : { text: this.text.value, etag: draft?.etag ?? null, base: text };
  }

  /** Loads a concurrent save. */
  private async loadConflict(): Promise<void> {
    try {
      const [saved, published] = await Promise.all([this.stored(true), this.stored(false)]);
      this.ancestor.value = this.base()?.text;
      this.published.value = published;
      const theirs = saved ?? published;
      if (theirs && theirs.text !== this.text.value) this.conflict.value = theirs;
      this.saved.value = saved;
    } catch (error) {
      this.unsaved.value = asFailure(error);
    }
  }

  keepMine(): Promise<boolean> {
    this.conflict.value = undefined;
    return this.save();
  }

  takeTheirs(): void {
    const theirs = this.conflict.value;
    this.conflict.value = undefined;
    if (theirs) this.text.value = theirs.text;
    this.local.value = null;
    void this.validate();
  }

  /** Runs the full validation. */
  async validate(): Promise<void> {
    this.judging?.abort();
    const asked = new AbortController();
    this.judging = asked;
    const text = this.text.value;
    this.validating.value = true;
    try {
      const verdict = await this.service.validate(this.slug, this.name, text, asked.signal);
      if (asked.signal.aborted) return;
      this.verdict.value = verdict;
      this.validationFailure.value = undefined;
    } catch (error) {
      if (!asked.signal.aborted) this.validationFailure.value = asFailure(error);
    } finally {
      if (this.judging === asked) this.validating.value = false;
    }
  }

  /**
   * Replaces names that no longer exist by the proposed ones, as one step that can be undone. Returns the number of
   * places; the database names one problem of a query at a time.
   */
  async repair(renames: ConfigRename[]): Promise<number> {
    const before = this.text.value;
    let places = 0;
    for (let round = 0; round < REPAIR_ROUNDS_MAX; round += 1) {
      await this.validate();
      if (this.validationFailure.value || this.judging?.signal.aborted) break;
      const text = this.text.value;
      // From the end, so that the places of the others stay.
      const errors = (this.verdict.value?.errors ?? []).toSorted((a, b) => b.line - a.line || b.column - a.column);
      let next = text;
      for (const problem of errors) {
        const mended = repaired(next, problem, renames);
        if (mended === undefined) continue;
        next = mended;
        places += 1;
      }
      if (next === text) break;
      this.text.value = next;
    }
    const after = this.text.value;
    if (after === before) return 0;
    this.text.value = before;
    this.edit(after);
    return places;
  }

  /** Loads the published version for the diff. */
  async loadPublished(): Promise<void> {
    this.published.value = await this.stored(false);
  }

  /** @throws ApiFailure, after recording its findings */
  async publish(): Promise<void> {
    if (!(await this.save())) throw this.unsaved.value ?? new Error("the draft couldn't be saved");
    // The text equals the published one, so that no draft is left.
    if (!this.saved.value) return;
    try {
      await this.service.publish(this.slug, this.name, this.saved.value?.etag ?? null);
      this.published.value = this.saved.value;
      this.saved.value = undefined;
    } catch (error) {
      const failure = asFailure(error);
      if (failure.code === "invalid_dashboard") {
        const errors = failure.problems as unknown as DashboardVerdict["errors"];
        this.verdict.value = { ok: false, errors, warnings: this.verdict.value?.warnings ?? [] };
      }
      if (failure.status === 412) await this.loadConflict();
      throw failure;
    }
  }

  /** Returns to the published version: saving it as the draft and publishing it removes the draft. */
  async discard(): Promise<void> {
    await this.loadPublished();
    const published = this.published.value;
    if (!published) throw new Error("nothing is published");
    clearTimeout(this.timer);
    await this.saveDone;
    const draft = this.saved.value;
    if (draft) {
      // One request, so that no outdated draft is shown.
      const { etag } = await this.service.saveDraft(this.slug, this.name, published.text, draft.etag);
      await this.remove({ text: published.text, etag });
    }
    this.conflict.value = undefined;
    this.unsaved.value = undefined;
    this.local.value = null;
    this.text.value = published.text;
    void this.validate();
  }

  /** The page is left; unsaved text stays in this browser. */
  leave(): void {
    clearTimeout(this.timer);
    this.judging?.abort();
    if (this.dirty.value && !this.conflict.value) void this.save();
  }

  forget(): void {
    clearTimeout(this.timer);
    this.local.value = null;
    this.state.value = "loading";
  }
}
