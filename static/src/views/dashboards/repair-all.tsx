import { useQuery, useQueryClient } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import { keys, renamesQuery } from "../../api/queries";
import type { ConfigRename, DashboardEntry } from "../../api/types";
import { wasRenamed } from "../../boards/repair";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { Note } from "../../components/states";
import { toast } from "../../components/toasts";
import { counted } from "../../format/number";
import { Draft } from "./draft";

/** `fare` → `price` */
const renameText = ({ from, to }: ConfigRename) => (
  <>
    <code>{from}</code> → <code>{to}</code>
  </>
);

/** Replaces renamed names in a dashboard, and publishes it if it has no problems and no other changes. */
async function repairOne(slug: string, entry: DashboardEntry, renames: ConfigRename[]): Promise<boolean> {
  const draft = new Draft(slug, entry.name);
  await draft.load();
  if (draft.state.peek() !== "ready") throw draft.failure.peek() ?? new Error(`couldn't load ${entry.name}`);
  try {
    await draft.repair(renames);
    if (!draft.verdict.peek()?.ok) return false;
    if (entry.draft) return await draft.save();
    await draft.publish();
    return true;
  } finally {
    draft.leave();
  }
}

/** Offers to replace renamed names in all dashboards that no longer fit the tables for that reason. */
export function RepairAll({ slug, broken }: { slug: string; broken: DashboardEntry[] }) {
  const cache = useQueryClient();
  const { data: renames = [] } = useQuery({ ...renamesQuery(slug), enabled: broken.length > 0 });
  const [asks, setAsks] = useState(false);
  const [busy, setBusy] = useState(false);
  const fits = broken.filter(({ problems }) => problems?.some(({ message }) => wasRenamed(message, renames)));
  const used = renames.filter((one) =>
    fits.some(({ problems }) => problems?.some(({ message }) => wasRenamed(message, [one]))),
  );
  if (fits.length === 0) return null;
  const repair = async () => {
    setBusy(true);
    let [done, left] = [0, 0];
    try {
      for (const entry of fits) {
        if (await repairOne(slug, entry, renames)) done += 1;
        else left += 1;
      }
      const rest = left > 0 ? ` ${counted(left, "dashboard")} still ${left === 1 ? "has" : "have"} problems.` : "";
      toast.done(`${counted(done, "dashboard")} changed.${rest}`);
      setAsks(false);
    } catch (error) {
      toast.failed(`Couldn't change all dashboards; ${done} changed`, error);
    }
    setBusy(false);
    await cache.invalidateQueries({ queryKey: keys.dashboards(slug) });
  };
  return (
    <Note tone="warn">
      <div class="row wrap">
        <span class="grow">
          {counted(fits.length, "dashboard")} {fits.length === 1 ? "uses" : "use"} names that were renamed in the
          config:{" "}
          {used.map((one, at) => (
            <span key={`${String(one.table)} ${one.from}`}>
              {at > 0 && ", "}
              {renameText(one)}
            </span>
          ))}
          .
        </span>
        <Button onClick={() => setAsks(true)}>Replace in all…</Button>
      </div>
      {asks && (
        <Confirm
          title="Replace renamed names"
          action="Replace"
          busy={busy}
          onConfirm={() => void repair()}
          onClose={() => setAsks(false)}
        >
          <p>These dashboards get the new names. Those without unpublished changes are published.</p>
          <ul>
            {fits.map(({ name, draft }) => (
              <li key={name}>
                {name}
                {draft && <span class="secondary"> · has unpublished changes; only its draft is changed</span>}
              </li>
            ))}
          </ul>
        </Confirm>
      )}
    </Note>
  );
}
