import { LayoutDashboard } from "lucide-preact";
import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import type { Table } from "../../api/types";
import { Button } from "../../components/button";
import { toast } from "../../components/toasts";
import { routes, startFrom } from "../../browser/routes";

const FAILED = "Couldn't create the dashboard";

/** Creates a starter dashboard of the table and opens its draft. */
export function MakeDashboard({ slug, table }: { slug: string; table: Table }) {
  const [, go] = useLocation();
  const [busy, setBusy] = useState(false);
  const make = async () => {
    setBusy(true);
    try {
      const { freeNameOf } = await import("../../boards/make");
      const name = await freeNameOf(slug, table.name);
      toast.resolved(FAILED);
      // The editor creates it, and shows that at once.
      go(`~${routes.editDashboard(slug, name)}`, { state: startFrom(table.name) });
    } catch (error) {
      toast.failed(FAILED, error);
      setBusy(false);
    }
  };
  return (
    <Button
      icon={<LayoutDashboard />}
      variant="quiet"
      busy={busy}
      title="Creates a draft with key figures, charts and sample rows"
      onClick={() => void make()}
    >
      {busy ? "Creating dashboard…" : "Create dashboard"}
    </Button>
  );
}
