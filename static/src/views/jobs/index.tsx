import { Page } from "../../components/page";

export default function JobsView({ slug }: { slug: string }) {
  return (
    <Page title={`Jobs · ${slug}`} heading="Jobs">
      <p />
    </Page>
  );
}
