import { Page } from "../../components/page";

export default function DashboardsView({ slug }: { slug: string }) {
  return (
    <Page title={`Dashboards · ${slug}`} heading="Dashboards">
      <p />
    </Page>
  );
}
