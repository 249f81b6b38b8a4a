import { Page } from "../../components/page";

export default function SettingsView() {
  return (
    <Page title="Settings" heading="Settings">
      <p />
    </Page>
  );
}
