import { Page } from "../../components/page";

export default function NewView() {
  return (
    <Page title="From a CSV" heading="From a CSV">
      <p />
    </Page>
  );
}
