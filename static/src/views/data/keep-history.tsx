import { useQuery, useQueryClient } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import { loadConfig, saveConfig, type StoredMapping } from "../../api/config";
import { keys } from "../../api/queries";
import { Confirm } from "../../components/dialog";
import { SelectField } from "../../components/field";
import { toast } from "../../components/toasts";
import { counted } from "../../format/number";
import { withMapping } from "../../tables/changes";

/** Days to choose from. */
const DAYS = [1, 7, 30, 90, 365];
const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 };
const UNITS: Record<string, string> = { s: "second", m: "minute", h: "hour", d: "day" };
const NOT_KEPT = "0s";

const partsOf = (text: string): { n: number; unit: string } => ({ n: Number(text.slice(0, -1)), unit: text.slice(-1) });

/** Seconds of a duration such as `7d`. */
export const secondsOf = (text: string): number => partsOf(text).n * (SECONDS[partsOf(text).unit] ?? 0);

/** `7d` is `7 days`. */
export function keptText(text: string): string {
  if (secondsOf(text) === 0) return "not kept";
  const { n, unit } = partsOf(text);
  return counted(n, UNITS[unit] ?? unit);
}

/** How long a table keeps replaced versions. */
export function keptBy({ keep_history: kept, publish }: StoredMapping): string {
  if (typeof kept === "string") return kept;
  return Array.isArray(publish) && publish.length > 0 ? "1h" : NOT_KEPT;
}

/** The durations to choose from, ascending; another one that is set stays an option. */
export function durations(now: string): string[] {
  const offered = [NOT_KEPT, ...DAYS.map((days) => `${String(days)}d`)];
  const known = offered.some((one) => secondsOf(one) === secondsOf(now));
  return [...offered.filter((one) => one === now || secondsOf(one) !== secondsOf(now)), ...(known ? [] : [now])]
    .concat(known && !offered.includes(now) ? [now] : [])
    .sort((a, b) => secondsOf(a) - secondsOf(b));
}

/** Choice of how long the versions stay that runs replace; nothing while the table isn't in a valid config. */
export function KeepHistory({ slug, table }: { slug: string; table: string }) {
  const cache = useQueryClient();
  const [asked, setAsked] = useState<string>();
  const [busy, setBusy] = useState(false);
  const config = useQuery({
    queryKey: [...keys.config(slug), "keep_history"] as const,
    queryFn: () => loadConfig(slug),
    retry: false,
  });
  const mapping = config.data?.config.mappings?.find((one) => one.table === table);
  if (!config.data || !mapping) return null;
  const now = keptBy(mapping);
  const save = async (kept: string) => {
    setBusy(true);
    try {
      // The config may have changed since it was shown.
      const { config: stored, etag } = await loadConfig(slug);
      await saveConfig(
        slug,
        withMapping(stored, table, (given) => ({ ...given, keep_history: kept })),
        etag,
      );
      await cache.invalidateQueries({ queryKey: keys.config(slug) });
      toast.done(
        secondsOf(kept) === 0
          ? `Earlier versions of ${table} are deleted by the next run`
          : `Versions of ${table} are kept for ${keptText(kept)} after a run replaces them`,
      );
    } catch (error) {
      toast.failed("Couldn't save the config", error);
    } finally {
      setBusy(false);
      setAsked(undefined);
    }
  };
  const choose = (kept: string) => (secondsOf(kept) < secondsOf(now) ? setAsked(kept) : void save(kept));
  return (
    <div class="data-keep">
      <SelectField
        label="Keep earlier versions for"
        hint="Applies from the next run. Kept versions can be viewed and restored; they use storage."
        value={asked ?? now}
        disabled={busy}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        {durations(now).map((one) => (
          <option key={one} value={one}>
            {keptText(one)}
          </option>
        ))}
      </SelectField>
      {asked !== undefined && (
        <Confirm
          title={`Keep fewer versions of ${table}?`}
          action="Keep fewer versions"
          danger
          busy={busy}
          onConfirm={() => void save(asked)}
          onClose={() => setAsked(undefined)}
        >
          <p>
            {secondsOf(asked) === 0
              ? "The next run deletes all earlier versions."
              : `The next run deletes versions that were replaced more than ${keptText(asked)} ago.`}{" "}
            They can't be restored afterwards.
          </p>
        </Confirm>
      )}
    </div>
  );
}
