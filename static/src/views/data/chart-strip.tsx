import { useQuery } from "@tanstack/preact-query";
import { X } from "lucide-preact";
import { lazy, Suspense } from "preact/compat";
import { useMemo } from "preact/hooks";
import { asFailure } from "../../api/failure";
import { keys } from "../../api/queries";
import type { Table } from "../../api/types";
import { AddToDashboard } from "../../boards/add-dialog";
import { type ChartChoice, titleOf } from "../../boards/builder/choice";
import { firstChoice } from "../../boards/builder/pick";
import { profileTable } from "../../boards/builder/profile";
import { IconButton } from "../../components/button";
import { Skeleton } from "../../components/states";
import { parseChoice, printChoice } from "./chart-url";
import type { Address } from "./url-state";

const Builder = lazy(() => import("../../boards/builder"));

/** Chart above the rows of a table, of the rows that the filters keep. */
export function ChartStrip({ slug, table, address }: { slug: string; table: Table; address: Address }) {
  const { data: profile, error } = useQuery({
    queryKey: [...keys.table(slug, table.name), "profile"],
    queryFn: ({ signal }) => profileTable(slug, table, signal),
    staleTime: 30_000,
  });
  const { filters, chartText, set } = address;
  const choice = useMemo<ChartChoice | undefined>(() => {
    const chosen = parseChoice(chartText, table.name) ?? (profile && firstChoice(table.name, profile));
    if (!chosen) return undefined;
    const types = new Map(table.schema.map(({ name, type }) => [name, type]));
    const own = filters.map((filter) => ({ ...filter, type: types.get(filter.column) ?? "string" }));
    return own.length > 0 ? { ...chosen, filters: own } : chosen;
  }, [chartText, profile, filters, table]);
  const known = useMemo(() => profile && { columns: table.schema, profile }, [table, profile]);
  const change = (next: ChartChoice) =>
    set(
      {
        chart: printChoice(next),
        filters: (next.filters ?? []).map(({ column, operator, value }) => ({ column, operator, value })),
      },
      { replace: true },
    );
  const waiting = <Skeleton lines={9} label="Chart" />;
  return (
    <section class="data-chart" aria-label="Chart of the table">
      <header class="row">
        <h2 class="grow cut">{choice ? titleOf(choice) : table.name}</h2>
        <IconButton label="Close chart" icon={<X />} onClick={() => set({ chart: undefined }, { replace: true })} />
      </header>
      <div class="data-chart-box">
        {error && !known ? (
          <p class="secondary">Couldn't load the chart: {asFailure(error).message}</p>
        ) : !choice || !known ? (
          waiting
        ) : (
          <Suspense fallback={waiting}>
            <Builder
              slug={slug}
              choice={choice}
              known={known}
              onChange={change}
              actions={({ sql, max, ready }) => (
                <AddToDashboard slug={slug} panel={{ choice, sql, max }} suggested={table.name} ready={ready} />
              )}
            />
          </Suspense>
        )}
      </div>
    </section>
  );
}
