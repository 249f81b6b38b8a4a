import { useQuery } from "@tanstack/preact-query";
import { statusQuery } from "../../api/queries";
import { counted } from "../../format/number";
import { unreadable } from "../../runs/table-state";
import { nextRun, outlookText, type Outlook } from "./outlook";

/** Effect on the next run of the edited config, of what is saved already, and of the files in the lake. */
export function OutlookList({ slug, edited }: { slug: string; edited: Outlook[] }) {
  const { data: status } = useQuery(statusQuery(slug));
  const outlooks = status ? nextRun(edited, status) : edited;
  if (outlooks.length === 0 && status?.config.state === "invalid")
    return (
      <p class="secondary">
        {unreadable(status.config) && `${unreadable(status.config)}. `}Runs fail until the problems of the saved config
        are fixed.
      </p>
    );
  if (outlooks.length === 0)
    return <p class="secondary">{status?.complete ? "No tables change." : "No tables change by this edit."}</p>;
  const rebuilt = outlooks.filter(({ change }) => change === "rebuilt" || change === "shape").length;
  return (
    <>
      {rebuilt > 1 && <p class="secondary">{counted(rebuilt, "table")} will be rebuilt.</p>}
      <ul class="config-outlook">
        {outlooks.map((one) => (
          <li key={one.table}>
            <code>{one.table}</code> {outlookText(one)}
          </li>
        ))}
      </ul>
    </>
  );
}
