import { Page } from "../../components/page";

export default function DataView({ slug }: { slug: string }) {
  return (
    <Page title={`Data · ${slug}`} heading="Data">
      <p />
    </Page>
  );
}
