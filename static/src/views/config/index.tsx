import { Page } from "../../components/page";

export default function ConfigView({ slug }: { slug: string }) {
  return (
    <Page title={`Config · ${slug}`} heading="Config">
      <p />
    </Page>
  );
}
