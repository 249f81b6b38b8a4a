import { Page } from "../../components/page";

export default function PipelinesView() {
  return (
    <Page title="Pipelines" heading="Pipelines">
      <p />
    </Page>
  );
}
