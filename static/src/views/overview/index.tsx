import { Page } from "../../components/page";

export default function OverviewView({ slug }: { slug: string }) {
  return (
    <Page title={`Overview · ${slug}`} heading="Overview">
      <p />
    </Page>
  );
}
