import { Page } from "../../components/page";

export default function LakeView() {
  return (
    <Page title="Lake" heading="Lake">
      <p />
    </Page>
  );
}
