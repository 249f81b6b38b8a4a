import type { ComponentChildren } from "preact";
import { Link } from "wouter-preact";
import { Badge } from "../../components/status";
import { routes } from "../../browser/routes";
import type { StateTone } from "../../runs/table-state";

interface Props {
  slug: string;
  /** Relative to the pipeline's folder. */
  file: string;
  tone?: StateTone;
  label: string;
  /** Of the table, but for the first. */
  columns: number;
  chosen: boolean;
  onChoose: (on: boolean) => void;
  /** Why the table doesn't have it. */
  children: ComponentChildren;
}

/** A file of the lake whose rows a table doesn't have, among its sources. */
export function UnreadRow({ slug, file, tone = "neutral", label, columns, chosen, onChoose, children }: Props) {
  return (
    <tr>
      <td>
        <span class="row">
          <input
            type="checkbox"
            aria-label={`Select ${file}, ${label}`}
            checked={chosen}
            onChange={(event) => onChoose(event.currentTarget.checked)}
          />
          <Link href={`~${routes.source(slug, file)}`}>{file}</Link> <Badge tone={tone}>{label}</Badge>
        </span>
      </td>
      <td colSpan={columns} class="secondary" data-label="State">
        {children}
      </td>
    </tr>
  );
}
