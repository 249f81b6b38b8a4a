/** Adds charts to dashboards. */
import { saveDraft, statesOf, textOf } from "../api/dashboards";
import { asFailure } from "../api/failure";
import { client, keys } from "../api/queries";
import type { ChartChoice } from "./builder/choice";
import { nameFrom, panelOf, widthOf } from "./builder/panel";
import { statementOf } from "./builder/statement";
import { addPanel, edited, panelIds, paramsOf, queryNames, valueOf, withParams } from "./yaml";

export interface NewPanel {
  choice: ChartChoice;
  sql: string;
  title: string;
  /** The largest value of the measure, if known. */
  max: number | undefined;
}

export type Target = { name: string } | { name: string; title: string };

/** A document without panels. */
export const emptyText = (title: string): string =>
  `version: 2\ntitle: ${JSON.stringify(title)}\n\nqueries: {}\n\npanels: []\n`;

/** Whether the query is the source itself, so that nothing has to be noted. */
const isSource = ({ choice, sql }: NewPanel): boolean =>
  "sql" in choice.source && choice.source.sql.trim() === sql.trim();

/** Adds a panel with its query, and returns the text and the panel's ID. Parameters of the table's charts apply to it. */
export function textWith(text: string, panel: NewPanel): { text: string; id: string } {
  let id = "";
  const after = edited(text, (document) => {
    const { source } = panel.choice;
    const uses = "table" in source ? paramsOf(valueOf(document), source.table) : [];
    const choice = uses.length > 0 ? withParams(panel.choice, uses) : panel.choice;
    id = nameFrom(panel.title, panelIds(document));
    const query = nameFrom(panel.title, queryNames(document));
    const fields = { id, title: panel.title, query, width: widthOf(choice) };
    const sql = uses.length > 0 ? statementOf(choice) : panel.sql;
    addPanel(document, panelOf(choice, fields, panel.max), {
      name: query,
      sql,
      choice: isSource(panel) ? undefined : choice,
    });
  });
  return { text: after, id };
}

/** Drafts that may have been saved: the answer was lost. */
const unanswered = new Map<string, { text: string; id: string }>();

/** Saves a draft, unless an attempt without an answer did. */
async function saved(slug: string, name: string, done: { text: string; id: string }, etag: string | null) {
  try {
    await saveDraft(slug, name, done.text, etag);
  } catch (error) {
    if (asFailure(error).status === 0) unanswered.set(`${slug}/${name}`, done);
    throw error;
  }
}

/** Adds a panel to the draft of a dashboard, which is created if it has a title. Returns the panel's ID. @throws ApiFailure, EditError */
export async function addToDashboard(slug: string, target: Target, panel: NewPanel): Promise<string> {
  const { name } = target;
  let done = unanswered.get(`${slug}/${name}`);
  const isNew = "title" in target;
  const { draft, published } = done || !isNew ? await statesOf(slug, name) : { draft: false, published: false };
  const stored = draft || published || !isNew ? await textOf(slug, name, draft) : undefined;
  if (!done || stored?.text !== done.text) {
    done = textWith(stored?.text ?? emptyText(isNew ? target.title : name), panel);
    await saved(slug, name, done, draft && stored ? stored.etag : null);
  }
  unanswered.delete(`${slug}/${name}`);
  await client.invalidateQueries({ queryKey: keys.dashboards(slug) });
  return done.id;
}
