import { useQuery } from "@tanstack/preact-query";
import { commitsQuery } from "../../api/queries";
import type { Commit, Table } from "../../api/types";
import { counted } from "../../format/number";
import { exact } from "../../format/time";
import type { Address } from "./url-state";

/** A version's time and size. */
export const versionText = ({ committed_at, rows, sources_archived }: Commit): string => {
  const archived = sources_archived > 0 ? `, ${counted(sources_archived, "source")} archived` : "";
  return `${exact(new Date(committed_at))} · ${counted(rows, "row")}${archived}`;
};

/** Chooses the version of a table that is shown; nothing where there is only the current one. */
export function History({ slug, table, address }: { slug: string; table: Table; address: Address }) {
  const { data } = useQuery(commitsQuery(slug, table.name));
  const earlier = data?.commits.slice(1) ?? [];
  const { asOf, set } = address;
  if (earlier.length === 0 && asOf === undefined) return null;
  const isListed = asOf === undefined || earlier.some(({ sequence }) => String(sequence) === asOf);
  return (
    <select
      class="input data-version"
      aria-label="Version"
      value={asOf ?? ""}
      onChange={(event) => set({ asOf: event.currentTarget.value || undefined }, { replace: true })}
    >
      <option value="">Current version</option>
      {!isListed && <option value={asOf}>Version {asOf}</option>}
      {earlier.map((commit) => (
        <option key={commit.sequence} value={String(commit.sequence)}>
          {versionText(commit)}
        </option>
      ))}
    </select>
  );
}
