import { Page } from "../../components/page";

export default function QueryView({ slug }: { slug: string }) {
  return (
    <Page title={`Query · ${slug}`} heading="Query">
      <p />
    </Page>
  );
}
