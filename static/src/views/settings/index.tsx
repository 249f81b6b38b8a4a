import { useQuery } from "@tanstack/preact-query";
import { taggedQuery } from "../../api/settings";
import { Page } from "../../components/page";
import { Failed, Skeleton } from "../../components/states";
import { About } from "./about";
import { Names } from "./names";
import { Notifications } from "./notifications";
import { PausePart } from "./pause";
import { SessionPart } from "./session";
import { Starred } from "./starred";
import { ThemePart } from "./theme";
import "./settings.css";

export default function SettingsView() {
  const { data, error, refetch } = useQuery(taggedQuery());
  return (
    <Page title="Settings" heading="Settings">
      <div class="settings">
        {error && !data ? (
          <Failed title="Couldn't load the settings" error={error} onRetry={() => void refetch()} />
        ) : data ? (
          <>
            <Names stored={data} />
            <Starred stored={data} />
          </>
        ) : (
          <Skeleton lines={14} />
        )}
        <ThemePart />
        <PausePart />
        <Notifications />
        <SessionPart />
        <About />
      </div>
    </Page>
  );
}
